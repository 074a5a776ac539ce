#include "engine/memory/session_memory.h"

#include <gtest/gtest.h>

#include "policy/policies/make_policy.h"

namespace memdecay {
namespace {

constexpr int kPageTokens = 16;

SessionMemoryOptions memory_options() {
  SessionMemoryOptions options;
  options.page_tokens = kPageTokens;
  options.forms[form_index(PageForm::kF16)] = {1000, 0};
  options.forms[form_index(PageForm::kInt8)] = {560, 0.004F};
  options.forms[form_index(PageForm::kInt4)] = {300, 0.08F};
  return options;
}

SessionMemory memory_with(const char* policy) {
  PolicyOptions options;
  options.memdecay.protection.newest_pages = 1;
  options.memdecay.protection.sink_tokens = 0;
  options.memdecay.protection.floor_share = 0;
  return {make_policy(policy, options).value(), memory_options()};
}

/// A view as kv would show it: pages of the given fills, one after another.
class Pages {
 public:
  explicit Pages(std::vector<int> fills) {
    Position at = 0;
    for (const int fill : fills) {
      KvPageRef ref;
      ref.first_position = at;
      ref.filled = fill;
      refs_.push_back(ref);
      at += fill;
    }
    size_ = at;
    layout_.page_tokens = kPageTokens;
  }
  PagedKvView view() const { return {&layout_, refs_, 0}; }
  Position size() const { return size_; }
  std::vector<KvPageRef>& refs() { return refs_; }

 private:
  KvPageLayout layout_;
  std::vector<KvPageRef> refs_;
  Position size_ = 0;
};

PromptLabels labels(std::vector<std::pair<int, Region>> runs) {
  PromptLabels labels;
  Position at = 0;
  for (const auto& [tokens, region] : runs) {
    RegionSpan span;
    span.tokens = {at, at + tokens};
    span.region = region;
    labels.regions.push_back(span);
    at += tokens;
  }
  labels.exact.assign(static_cast<std::size_t>(at), 0);
  labels.phases.assign(static_cast<std::size_t>(at), QueryPhase::kTool);
  return labels;
}

TEST(SessionMemory, PagesAreCutWhereRegionsChangeAndWhereTheAnswerBegins) {
  SessionMemory memory = memory_with("memdecay");
  EXPECT_TRUE(memory.cuts(0, 100).empty()) << "nothing is labelled";
  memory.label(labels({{20, Region::kSystem}, {30, Region::kTool}, {10, Region::kOrdinary}}));
  EXPECT_EQ(memory.cuts(0, 60), (std::vector<Position>{20, 50}));
  EXPECT_EQ(memory.cuts(20, 50), (std::vector<Position>{20}));
  EXPECT_EQ(memory.cuts(21, 50), (std::vector<Position>{}));
  EXPECT_EQ(memory.cuts(55, 70), (std::vector<Position>{60}));
  EXPECT_EQ(memory.cuts(60, 61), (std::vector<Position>{60}));
  EXPECT_EQ(memory.cuts(61, 99), (std::vector<Position>{}));
  EXPECT_EQ(memory.phase_at(59), QueryPhase::kTool);
  EXPECT_EQ(memory.phase_at(60), QueryPhase::kAct);
}

TEST(SessionMemory, EveryPageIsTrackedWithItsRegion) {
  SessionMemory memory = memory_with("memdecay");
  memory.label(labels({{20, Region::kSystem}, {30, Region::kTool}}));
  const Pages pages({16, 4, 16, 14, 3});
  memory.sync(pages.view(), pages.size());
  ASSERT_EQ(memory.pages().size(), 5U);
  EXPECT_EQ(memory.tracked_bytes(), 5000U);
  const Region expected[] = {Region::kSystem, Region::kSystem, Region::kTool, Region::kTool,
                             Region::kRecent};
  for (std::size_t i = 0; i < 5; ++i) {
    const PageMeta& meta = memory.meta(memory.pages()[i]);
    EXPECT_EQ(meta.region, expected[i]) << i;
    EXPECT_EQ(meta.sealed, i != 4) << i;
    EXPECT_EQ(meta.position, pages.view().pages[i].first_position);
  }
}

TEST(SessionMemory, GrowthCutsAndDropsKeepItInStepWithTheView) {
  SessionMemory memory = memory_with("window");
  Pages pages({16, 16, 5});
  memory.sync(pages.view(), pages.size());
  const TrackedPageId last = memory.pages()[2].id;
  Pages grown({16, 16, 16, 2});
  memory.sync(grown.view(), grown.size());
  EXPECT_EQ(memory.pages()[2].id, last) << "a page that grows stays the same page";
  EXPECT_TRUE(memory.meta(memory.pages()[2]).sealed);
  const std::vector<Position> gone = {16};
  memory.dropped(gone);
  EXPECT_EQ(memory.evicted_tokens(), 16);
  EXPECT_EQ(memory.tracked_bytes(), 3000U);
  grown.refs().erase(grown.refs().begin() + 1);
  memory.sync(grown.view(), grown.size());
  EXPECT_EQ(memory.pages().size(), 3U);
  grown.refs().pop_back();
  memory.sync(grown.view(), 48);
  EXPECT_EQ(memory.pages().size(), 2U);
  EXPECT_EQ(memory.tracked_bytes(), 2000U);
}

TEST(SessionMemory, ACutBackAndAnotherTailAreOtherPages) {
  SessionMemory memory = memory_with("window");
  const Pages first({16, 16, 16});
  memory.sync(first.view(), 48);
  const Pages cut({16, 4});
  memory.sync(cut.view(), 20);
  EXPECT_EQ(memory.tracked_bytes(), 2000U);
  EXPECT_FALSE(memory.meta(memory.pages()[1]).sealed);
  const Pages regrown({16, 4, 16});
  memory.sync(regrown.view(), 36);
  EXPECT_EQ(memory.pages()[2].first_position, 20);
  EXPECT_EQ(memory.tracked_bytes(), 3000U);
}

TEST(SessionMemory, APageIsOpenUntilItsTokensAreComputed) {
  SessionMemory memory = memory_with("window");
  const Pages pages({16, 16, 16, 5});
  memory.sync(pages.view(), pages.size(), 20);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(memory.meta(memory.pages()[i]).sealed, i == 0) << i;
  PlanRequest request;
  request.budget_bytes = 0;
  EXPECT_EQ(memory.plan(request).actions.size(), 1U);
  memory.sync(pages.view(), pages.size(), 53);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(memory.meta(memory.pages()[i]).sealed, i < 3) << i;
  EXPECT_EQ(memory.plan(request).actions.size(), 3U);
}

TEST(SessionMemory, OnlyWhatMayEvictWantsEvidence) {
  SessionMemoryOptions options = memory_options();
  for (const bool evicts : {true, false}) {
    options.evicts = evicts;
    const SessionMemory memory(make_policy("h2o", {}).value(), options);
    EXPECT_EQ(memory.wants(EvidenceKind::kAttentionMass), evicts);
    EXPECT_FALSE(memory.wants(EvidenceKind::kDeletionError));
  }
}

TEST(SessionMemory, PlansNameThePagesOfTheView) {
  SessionMemory memory = memory_with("window");
  const Pages pages({16, 16, 16, 16});
  memory.sync(pages.view(), pages.size());
  PlanRequest request;
  request.budget_bytes = 2000;
  const EvictionPlan plan = memory.plan(request);
  ASSERT_EQ(plan.actions.size(), 2U);
  EXPECT_EQ(memory.page(plan.actions[0].page).first_position, 0);
  EXPECT_EQ(memory.page(plan.actions[1].page).first_position, 16);
}

TEST(SessionMemory, DemotedPagesWeighLess) {
  SessionMemory memory = memory_with("window");
  const Pages pages({16, 16});
  memory.sync(pages.view(), pages.size());
  memory.demoted(0, KvFormat::kInt8, 0.008F);
  EXPECT_EQ(memory.tracked_bytes(), 1560U);
  EXPECT_EQ(memory.pages()[0].format, KvFormat::kInt8);
  // Twice the usual error in int8 promises twice the usual in int4; other pages know nothing of it.
  const auto errors_of = [&](std::size_t page) {
    const auto& forms = memory.meta(memory.pages()[page]).forms;
    return std::pair(forms[form_index(PageForm::kInt8)].rounding_error,
                     forms[form_index(PageForm::kInt4)].rounding_error);
  };
  EXPECT_EQ(errors_of(0), std::pair(0.008F, 0.16F));
  EXPECT_EQ(errors_of(1), std::pair(0.004F, 0.08F));
}

TEST(SessionMemory, LabelsThatComeLaterReachThePagesThatAreThere) {
  SessionMemory memory = memory_with("memdecay");
  const Pages pages({16, 16});
  memory.sync(pages.view(), pages.size());
  EXPECT_EQ(memory.meta(memory.pages()[0]).region, Region::kRecent);
  memory.label(labels({{16, Region::kSystem}, {16, Region::kOrdinary}}));
  EXPECT_EQ(memory.meta(memory.pages()[0]).region, Region::kSystem);
  EXPECT_EQ(memory.meta(memory.pages()[1]).region, Region::kOrdinary);
}

TEST(SessionMemory, EvidenceReachesThePagesThatItIsAbout) {
  SessionMemory memory = memory_with("h2o");
  const Pages pages({16, 16, 16});
  memory.sync(pages.view(), pages.size());
  const std::vector<float> mass = {0.7F, 0.1F, 0.2F};
  memory.observe(EvidenceKind::kAttentionMass, QueryPhase::kAct, mass);
  PlanRequest request;
  request.budget_bytes = 2000;
  const EvictionPlan plan = memory.plan(request);
  ASSERT_EQ(plan.actions.size(), 1U);
  EXPECT_EQ(memory.page(plan.actions[0].page).first_position, 16) << "the least attention";
}

/// The view after pages [first, first + count) were packed into pages of these fills.
Pages packed_view(const Pages& before, std::size_t first, std::size_t count,
                  const std::vector<std::pair<Position, int>>& after) {
  Pages view = before;
  auto& refs = view.refs();
  const auto at = refs.begin() + static_cast<std::ptrdiff_t>(first);
  refs.erase(at, at + static_cast<std::ptrdiff_t>(count));
  std::vector<KvPageRef> fresh;
  for (const auto& [position, filled] : after) {
    KvPageRef ref;
    ref.first_position = position;
    ref.filled = filled;
    fresh.push_back(ref);
  }
  refs.insert(refs.begin() + static_cast<std::ptrdiff_t>(first), fresh.begin(), fresh.end());
  return view;
}

TEST(SessionMemory, PackedPagesTakeTheirPartsPlace) {
  SessionMemory memory = memory_with("h2o");
  memory.label(labels({{4, Region::kSystem}, {28, Region::kTool}, {20, Region::kOrdinary}}));
  const Pages pages({4, 16, 12, 16, 4, 6});
  memory.sync(pages.view(), pages.size());
  const std::vector<float> mass = {0.1F, 0.2F, 0.05F, 0.3F, 0.25F, 0.1F};
  memory.observe(EvidenceKind::kAttentionMass, QueryPhase::kAct, mass);
  const Pages view = packed_view(pages, 1, 4, {{4, 16}, {20, 16}, {36, 16}});
  memory.packed(1, 4, view.view(), PackedRuns());
  ASSERT_EQ(memory.pages().size(), 5U);
  EXPECT_EQ(memory.tracked_bytes(), 5000U);
  EXPECT_EQ(memory.evicted_tokens(), 0);
  const Region expected[] = {Region::kSystem, Region::kTool, Region::kTool, Region::kOrdinary};
  for (std::size_t i = 0; i < 4; ++i) {
    const PageMeta& meta = memory.meta(memory.pages()[i]);
    EXPECT_EQ(meta.region, expected[i]) << i;
    EXPECT_EQ(meta.position, view.view().pages[i].first_position);
    EXPECT_TRUE(meta.sealed);
  }
  // Page 2 holds 12 tokens that got 0.05 and a quarter of a page that got 0.3: 0.125 go first but
  // for page 0 (0.1) and the open one.
  PlanRequest request;
  request.budget_bytes = 3000;
  const EvictionPlan plan = memory.plan(request);
  ASSERT_EQ(plan.actions.size(), 2U);
  EXPECT_EQ(memory.page(plan.actions[0].page).first_position, 0);
  EXPECT_EQ(memory.page(plan.actions[1].page).first_position, 20);
  memory.sync(view.view(), view.size());
  EXPECT_EQ(memory.pages().size(), 5U);
  EXPECT_EQ(memory.tracked_bytes(), 5000U) << "a sync finds all as it was";
}

/// `refused`: no form can hold the page's numbers, so a cut makes another page of it.
void judge_packed_page(bool refused) {
  SessionMemory memory = memory_with("window");
  PromptLabels spans = labels({{6, Region::kOrdinary}, {24, Region::kTool}, {10, Region::kRecent}});
  std::fill(spans.exact.begin() + 30, spans.exact.begin() + 35, std::uint8_t{1});
  memory.label(spans);
  Pages pages({6, 16, 8, 10, 3});
  memory.sync(pages.view(), pages.size());
  const std::vector<Position> gone = {6, 22};
  memory.dropped(gone);
  pages.refs().erase(pages.refs().begin() + 1, pages.refs().begin() + 3);
  const auto budget = KvBudget::create(1 << 20).value();
  auto paid = budget->try_reserve(4096);
  PackedRuns runs;
  runs.memory().grow(runs.memory().growth_for(4), *paid);
  const std::vector<PositionRun> kept = {{0, 6}, {30, 10}};
  runs.insert(kept);
  const Pages view = packed_view(pages, 0, 2, {{0, 16}});
  memory.packed(0, 2, view.view(), runs);
  ASSERT_EQ(memory.pages().size(), 2U);
  const PageMeta& meta = memory.meta(memory.pages()[0]);
  EXPECT_EQ(meta.region, Region::kRecent) << "not the tool text that its positions span";
  EXPECT_FLOAT_EQ(meta.exact_share, 5.0F / 16.0F);
  if (refused) memory.refuse_forms(0);
  // Cut back into the second run, then before it.
  for (const auto& [size, tokens] : {std::pair(33, 9), std::pair(4, 4)}) {
    Pages cut = view;
    cut.refs().pop_back();
    cut.refs()[0].filled = tokens;
    if (cut.refs().size() > 1) cut.refs().resize(1);
    memory.sync(cut.view(), size);
    ASSERT_EQ(memory.pages().size(), 1U);
    EXPECT_EQ(memory.pages()[0].runs.size(), size == 33 ? 2U : 0U);
    EXPECT_EQ(memory.meta(memory.pages()[0]).region, Region::kOrdinary) << size;
  }
}

TEST(SessionMemory, APackedPageIsJudgedByAllItsRuns) {
  for (const bool refused : {false, true}) {
    SCOPED_TRACE(refused);
    judge_packed_page(refused);
  }
}

}  // namespace
}  // namespace memdecay
