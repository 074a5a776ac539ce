// What every policy promises (eviction_policy.h), held under random operations against naive
// oracles.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "policy/decay_math.h"
#include "policy/policies/classic_policy.h"
#include "policy/policies/make_policy.h"
#include "policy/policy_for_test.h"

namespace memdecay {
namespace {

struct Seen {
  std::int64_t step;
  EvidenceKind kind;
  QueryPhase phase;
  float value;
  bool access;
};

/// A random session: the same calls go to the policy, and into plain lists.
class RandomSession {
 public:
  RandomSession(std::string_view name, const PolicyOptions& options, unsigned seed)
      : name_(name), options_(options), random_(seed), oracle_(protection()) {
    policy_ = make_policy(name, options).value();
  }

  ProtectionOptions protection() const {
    ProtectionOptions protection = options_.memdecay.protection;
    if (name_ != "memdecay" && !options_.baseline_lag) protection.lag_rounds = 0;
    if (name_ != "memdecay" && !options_.baseline_floors) protection.floor_share = 0;
    if (name_ != "memdecay") {
      protection.lag_bonus = std::numeric_limits<double>::infinity();
    }
    if (name_ == "window") protection.sink_tokens = 0;
    return protection;
  }

  void append() {
    PageMeta meta;
    meta.id = TrackedPageId(free_id());
    meta.region = kRegions[random_() % kRegionCount];
    meta.tokens = 1 + static_cast<int>(random_() % 32);
    meta.position = end_;
    meta.born_step = step_;
    meta.bytes = static_cast<std::uint64_t>(meta.tokens) * 100;
    meta.pinned = random_() % 16 == 0;
    meta.sealed = random_() % 8 != 0;
    meta.exact_share = static_cast<float>(random_() % 5) / 4;
    if (random_() % 2 == 0) {
      round_ += random_() % 3 == 0 ? 1 : 0;
      meta.tool_round = std::max(round_, 0);
      meta.tool_core = random_() % 3 != 0;
    }
    if (random_() % 3 == 0)  // an instruction, or the result of its round
      meta.item = meta.tool_round == kNoToolRound ? static_cast<int>(random_() % 6) : 6 + round_;
    for (std::size_t form = 0; form < kPageFormCount; ++form) {
      meta.forms[form] = {meta.bytes / (form + 1), 0.01F * static_cast<float>(form * form)};
    }
    end_ += meta.tokens;
    ordinals_[meta.id.value()] = tracked_++;
    seen_[meta.id.value()].clear();
    track(meta);
  }
  void change() {
    PageMeta meta = any();
    meta.sealed = true;
    if (random_() % 2 == 0) meta.region = kRegions[random_() % kRegionCount];
    if (random_() % 4 == 0) meta.item = kNoItem;
    if (random_() % 4 == 0) meta.pinned = !meta.pinned;
    track(meta);
  }
  void observe() {
    std::vector<PageEvidence> pages;
    for (const auto& [id, meta] : oracle_.pages()) {
      if (random_() % 3 == 0) continue;
      pages.push_back({TrackedPageId(id), static_cast<float>(random_() % 1000) / 1000.0F});
    }
    const auto kind = static_cast<EvidenceKind>(random_() % kEvidenceKindCount);
    const auto phase = static_cast<QueryPhase>(random_() % kQueryPhaseCount);
    policy_->observe({kind, phase, pages});
    double mass = 0;
    std::int64_t tokens = 0;
    for (const PageEvidence& e : pages) {
      mass += static_cast<double>(e.value);
      tokens += oracle_.pages().at(e.page.value()).tokens;
    }
    for (const PageEvidence& e : pages) {
      const double uniform =
          mass * oracle_.pages().at(e.page.value()).tokens / static_cast<double>(tokens);
      seen_[e.page.value()].push_back(
          {step_, kind, phase, e.value, static_cast<double>(e.value) > uniform});
    }
  }
  /// Makes sure that every page has evidence that counts; what that teaches is in the lists too.
  void observe_all() {
    std::vector<PageEvidence> pages;
    for (const auto& [id, meta] : oracle_.pages()) {
      const float value = static_cast<float>(random_() % 1000) / 1000.0F;
      pages.push_back({TrackedPageId(id), value});
      seen_[id].push_back({step_, EvidenceKind::kDeletionError, QueryPhase::kThink, value, false});
    }
    policy_->observe({EvidenceKind::kDeletionError, QueryPhase::kThink, pages});
  }
  void advance() {
    step_ += static_cast<std::int64_t>(random_() % 40);
    policy_->advance({step_, static_cast<double>(step_) / 20});
  }
  void release(TrackedPageId page) {
    policy_->release(page);
    oracle_.release(page);
  }
  /// Lays up to four neighbours together, into one page or two.
  void pack() {
    std::map<Position, PageMeta> by_position;
    for (const auto& [id, meta] : oracle_.pages()) by_position[meta.position] = meta;
    auto at = by_position.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_() % by_position.size()));
    std::vector<TrackedPageId> before;
    std::vector<PackedPart> parts;
    PageMeta meta = at->second;
    meta.tokens = 0;
    for (; at != by_position.end() && parts.size() < 4 && at->second.sealed; ++at) {
      before.push_back(at->second.id);
      parts.push_back({at->second.id, at->second.tokens});
      meta.tokens += at->second.tokens;
    }
    if (before.size() < 2) return;
    std::vector<PackedPage> after(1 + (meta.tokens > 8 ? random_() % 2 : 0));
    const std::int32_t each = meta.tokens / static_cast<std::int32_t>(after.size());
    std::int32_t rest = meta.tokens;
    int id = 1000;
    std::size_t from = 0;
    for (PackedPage& page : after) {
      while (oracle_.pages().contains(id)) ++id;
      page.meta = meta;
      page.meta.id = TrackedPageId(id++);
      page.meta.tokens = &page == &after.back() ? rest : each;
      page.meta.position += meta.tokens - rest;
      page.meta.bytes = static_cast<std::uint64_t>(page.meta.tokens) * 100;
      rest -= page.meta.tokens;
      for (std::int32_t left = page.meta.tokens; left > 0;) {
        const std::int32_t taken = std::min(left, parts[from].tokens);
        page.parts.push_back({parts[from].from, taken});
        left -= taken;
        parts[from].tokens -= taken;
        if (parts[from].tokens == 0) ++from;
      }
      seen_[page.meta.id.value()].clear();
      ordinals_[page.meta.id.value()] = tracked_++;
    }
    policy_->repack(before, after);
    if (options_.protect_prefix)
      for (PackedPage& page : after) page.meta.pinned |= page.meta.region == Region::kSystem;
    oracle_.repack(before, after);
  }
  void step() {
    const auto what = random_() % 16;
    if (what < 8 || oracle_.pages().size() < 4) return append();
    if (what < 10) return change();
    if (what < 13) return observe();
    if (what < 15) return advance();
    release(any().id);
  }

  /// The score by the policy's definition, from the lists alone; the policy's word for `random`.
  double naive_score(const PageMeta& meta, Region as) const;
  double naive_memdecay(const PageMeta& meta, Region as) const;

  const EvictionPolicy& policy() const { return *policy_; }
  PolicyOracle& oracle() { return oracle_; }
  std::mt19937& random() { return random_; }
  std::string_view name() const { return name_; }

 private:
  int free_id() {
    int id = 0;
    while (oracle_.pages().contains(id)) ++id;
    return id;
  }
  PageMeta any() {
    auto at = oracle_.pages().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_() % oracle_.pages().size()));
    return at->second;
  }
  void track(const PageMeta& meta) {
    policy_->track(meta);
    PageMeta known = meta;
    if (options_.protect_prefix) known.pinned |= meta.region == Region::kSystem;
    oracle_.track(known);
  }

  std::string_view name_;
  PolicyOptions options_;
  std::mt19937 random_;
  EvictionPolicyHandle policy_;
  PolicyOracle oracle_;
  std::map<int, std::vector<Seen>> seen_;  // by page
  std::map<int, unsigned> ordinals_;       // by page
  Position end_ = 0;
  std::int64_t step_ = 0;
  std::int32_t round_ = 0;
  unsigned tracked_ = 0;
};

double RandomSession::naive_memdecay(const PageMeta& meta, Region as) const {
  const MemdecayOptions& options = options_.memdecay;
  const std::size_t r = region_index(as);
  // All shifts that are common to all pages are left out: they change no order.
  double value = 0;
  double count = 0;
  double lasting = 0;
  for (const Seen& seen : seen_.at(meta.id.value())) {
    if (seen.kind != options.evidence_kind) continue;
    const double weight = options.evidence.phase_weights[static_cast<std::size_t>(seen.phase)];
    const double kept =
        std::pow(0.5, static_cast<double>(step_ - seen.step) / options.evidence.half_life_tokens);
    value += weight * kept * static_cast<double>(seen.value);
    count += weight * kept;
    lasting += weight * static_cast<double>(seen.value);
  }
  const double share = options.evidence.lasting_share;
  const double level =
      (1 - share) * std::log(value / count + 1e-9) + share * std::log(lasting + 1e-9);
  return options.region_weight * std::log(options.initial[r]) + options.beta * level +
         options.exact_bonus * static_cast<double>(meta.exact_share) -
         options.decay[r] * static_cast<double>(step_ - meta.born_step);
}

double RandomSession::naive_score(const PageMeta& meta, Region as) const {
  const auto& seen = seen_.at(meta.id.value());
  const auto of_kind = [&](EvidenceKind kind) {
    std::vector<Seen> some;
    for (const Seen& one : seen) {
      if (one.kind == kind) some.push_back(one);
    }
    return some;
  };
  const auto mass = of_kind(EvidenceKind::kAttentionMass);
  const std::size_t r = region_index(as);
  if (name_ == "memdecay") return naive_memdecay(meta, as);
  if (name_ == "window" || name_ == "sinks" || name_ == "recompute") return meta.position;
  if (name_ == "memdecay-classic") {
    const auto accesses = std::count_if(mass.begin(), mass.end(), [](auto& s) { return s.access; });
    return std::log(kInitialScores[r]) -
           default_region_decay()[r] * static_cast<double>(step_ - meta.born_step) +
           std::log(1 + 0.1 * std::log(1 + static_cast<double>(accesses)));
  }
  if (name_ == "uniform") {
    unsigned mirrored = 0;
    for (int bit = 0; bit < 32; ++bit) {
      if ((ordinals_.at(meta.id.value()) >> bit & 1) != 0) mirrored |= 1U << (31 - bit);
    }
    return -static_cast<double>(mirrored);
  }
  if (name_ == "h2o") {
    double sum = 0;
    for (const Seen& one : mass) sum += static_cast<double>(one.value);
    return sum;
  }
  if (name_ == "tova") {
    const auto last = of_kind(EvidenceKind::kLastQueryMass);
    return last.empty() ? 1.0 : static_cast<double>(last.back().value);
  }
  if (name_ == "keydiff") {
    const auto similar = of_kind(EvidenceKind::kKeySimilarity);
    return similar.empty() ? 1.0 : -static_cast<double>(similar.back().value);
  }
  if (name_ == "lru") {
    double used = static_cast<double>(meta.born_step);
    for (const Seen& one : mass) {
      if (one.access) used = static_cast<double>(one.step);
    }
    return used;
  }
  return 0;
}

void expect_same(const EvictionPlan& a, const EvictionPlan& b) {
  EXPECT_EQ(a.actions, b.actions);
  EXPECT_EQ(a.freed_bytes, b.freed_bytes);
  EXPECT_EQ(a.missing_bytes, b.missing_bytes);
}

/// Exact values give up int8 keys only after every other page that may is as coarse as it gets.
void check_exact_values_give_last(RandomSession& session, const EvictionPlan& plan) {
  std::map<std::int32_t, const PlanAction*> actions;
  bool exact_gave = false;
  for (const PlanAction& action : plan.actions) {
    actions[action.page.value()] = &action;
    const PageMeta& meta = session.oracle().pages().at(action.page.value());
    exact_gave |= !action.drop && meta.exact_share >= 0.1F && action.form > PageForm::kK8V4;
  }
  if (!exact_gave) return;
  for (const auto& [id, meta] : session.oracle().pages()) {
    const Shield shield = session.policy().explain(TrackedPageId(id)).shield;
    const bool free = shield == Shield::kNone || shield == Shield::kRoundMate;
    if (!free || meta.pinned || meta.exact_share >= 0.1F) continue;
    const auto action = actions.find(id);
    if (action != actions.end() && action->second->drop) continue;
    const PageForm form = action == actions.end() ? meta.form : action->second->form;
    const std::uint64_t bytes = form == meta.form ? meta.bytes : meta.forms[form_index(form)].bytes;
    for (std::size_t coarser = form_index(form) + 1; coarser < kPageFormCount; ++coarser) {
      const std::uint64_t offered = meta.forms[coarser].bytes;
      EXPECT_TRUE(offered == 0 || offered >= bytes)
          << session.policy().explain(TrackedPageId(id)).sentence << "; planned "
          << page_form_name(form) << ", offered " << page_form_name(static_cast<PageForm>(coarser));
    }
  }
}

/// Everything a plan must leave, whatever its order.
void check_invariants(RandomSession& session, const EvictionPlan& plan, std::uint64_t budget) {
  PolicyOracle& oracle = session.oracle();
  std::set<std::int32_t> touched;
  std::set<std::int32_t> gone;
  std::uint64_t freed = 0;
  for (const PlanAction& action : plan.actions) {
    ASSERT_TRUE(touched.insert(action.page.value()).second) << "a page has one action";
    const PageMeta& meta = oracle.pages().at(action.page.value());
    freed += action.freed_bytes;
    ASSERT_TRUE(meta.sealed);
    if (!action.drop) {
      if (oracle.newest(meta)) {
        ASSERT_LE(action.form, LadderOptions().lowest_newest);
      }
      ASSERT_EQ(action.freed_bytes, meta.bytes - meta.forms[form_index(action.form)].bytes);
      ASSERT_GT(action.form, meta.form);
      if (meta.pinned) {
        ASSERT_LE(action.form, PageForm::kInt8);
      }
      continue;
    }
    ASSERT_FALSE(oracle.newest(meta));
    ASSERT_EQ(action.freed_bytes, meta.bytes);
    ASSERT_FALSE(oracle.shielded(meta)) << session.policy().explain(action.page).sentence;
    gone.insert(action.page.value());
  }
  check_exact_values_give_last(session, plan);
  ASSERT_EQ(plan.freed_bytes, freed);
  ASSERT_EQ(session.policy().tracked_bytes(), oracle.bytes());
  const std::uint64_t left = oracle.bytes() - freed;
  ASSERT_EQ(plan.missing_bytes, left > budget ? left - budget : 0);
  const auto first_to_go = [&](const auto& entry) {
    return !gone.contains(entry.first) && oracle.goes_before_live_floors(entry.second);
  };
  const bool others_left = std::any_of(oracle.pages().begin(), oracle.pages().end(), first_to_go);
  for (const std::int32_t id : gone) {
    const PageMeta& meta = oracle.pages().at(id);
    const bool instruction = meta.tool_round == kNoToolRound;
    if (meta.item != kNoItem &&
        (instruction || (oracle.is_young(meta.tool_round) && others_left))) {
      ASSERT_GE(oracle.kept(meta.item, gone), oracle.floor_of(meta.item));
    }
    if (!PolicyOracle::core(meta)) continue;
    for (const PageMeta& mate : oracle.round(meta.tool_round)) {
      if (gone.contains(mate.id.value())) continue;
      ASSERT_TRUE(oracle.is_held(meta.tool_round)) << "a round dies whole";
      ASSERT_FALSE(others_left) << "a round breaks when nothing else is left";
    }
  }
}

std::set<std::int32_t> dropped(const EvictionPlan& plan) {
  std::set<std::int32_t> pages;
  for (const PlanAction& action : plan.actions) {
    if (action.drop) pages.insert(action.page.value());
  }
  return pages;
}

void carry_out_drops(RandomSession& session, const EvictionPlan& plan) {
  for (const std::int32_t id : dropped(plan)) session.release(TrackedPageId(id));
}

PolicyOptions test_options() {
  PolicyOptions options;
  options.memdecay.protection.newest_pages = 3;
  options.memdecay.rekey_threshold = 0;
  options.memdecay.adaptive.enabled = false;
  return options;
}

class PolicyContract : public testing::TestWithParam<std::string_view> {};

TEST_P(PolicyContract, PlansAreThoseOfTheNaiveOracle) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    PolicyOptions options = test_options();
    options.baseline_lag = options.baseline_floors = seed % 2 == 0;
    options.protect_prefix = seed % 3 == 0;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 120; ++i) {
      session.step();
      const std::uint64_t bytes = session.oracle().bytes();
      const std::uint64_t budget = session.random()() % (bytes + 1);
      const EvictionPlan plan = session.policy().plan({budget, Urgency::kPressed, 0});
      check_invariants(session, plan, budget);
      if (HasFatalFailure()) return;
      expect_same(plan, session.policy().plan({budget, Urgency::kPressed, 0}));
      if (GetParam() == "random" || GetParam() == "memdecay") continue;
      const auto naive = session.oracle().drops(
          budget, GetParam() == "recompute",
          [&](const PageMeta& meta, Region as) { return session.naive_score(meta, as); });
      const auto explained = [&] {
        std::string text = fmt::format("seed {} step {}", seed, i);
        for (const auto& pages : {dropped(plan), naive})
          for (const std::int32_t id : pages)
            text += "\n" + session.policy().explain(TrackedPageId(id)).sentence;
        return text;
      };
      ASSERT_EQ(dropped(plan), naive) << explained();
      if (i % 30 == 29) {
        for (const std::int32_t id : naive) session.release(TrackedPageId(id));
      }
    }
  }
}

TEST_P(PolicyContract, InvariantsHoldWithTheLadderAndInGentlePlans) {
  for (unsigned seed = 100; seed < 108; ++seed) {
    PolicyOptions options = test_options();
    options.memdecay.ladder.enabled = true;
    options.memdecay.rekey_threshold = 0.02;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 150; ++i) {
      session.step();
      const std::uint64_t budget = session.random()() % (session.oracle().bytes() + 1);
      const Urgency urgency = i % 2 == 0 ? Urgency::kPressed : Urgency::kGentle;
      const EvictionPlan plan = session.policy().plan({budget, urgency, 0.5});
      check_invariants(session, plan, budget);
      if (HasFatalFailure()) return;
      if (i % 25 == 24) carry_out_drops(session, plan);
    }
  }
}

TEST_P(PolicyContract, InvariantsHoldWherePagesArePacked) {
  for (unsigned seed = 200; seed < 208; ++seed) {
    PolicyOptions options = test_options();
    options.memdecay.ladder.enabled = seed % 2 == 0;
    options.protect_prefix = seed % 3 == 0;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 150; ++i) {
      session.step();
      if (i % 3 == 2) session.pack();
      const std::uint64_t budget = session.random()() % (session.oracle().bytes() + 1);
      const EvictionPlan plan = session.policy().plan({budget, Urgency::kPressed, 0});
      check_invariants(session, plan, budget);
      if (HasFatalFailure()) return;
      if (i % 25 == 24) carry_out_drops(session, plan);
    }
  }
}

TEST_P(PolicyContract, APlanThatMayNotDropOnlyChangesForms) {
  for (unsigned seed = 200; seed < 204; ++seed) {
    PolicyOptions options = test_options();
    options.memdecay.ladder.enabled = true;
    RandomSession session(GetParam(), options, seed);
    for (int i = 0; i < 100; ++i) {
      session.step();
      PlanRequest request{session.random()() % (session.oracle().bytes() + 1)};
      request.urgency = i % 2 == 0 ? Urgency::kPressed : Urgency::kGentle;
      request.gentle_score_ceiling = 1e9;
      const std::size_t drops_alone = dropped(session.policy().plan(request)).size();
      request.may_drop = false;
      const EvictionPlan plan = session.policy().plan(request);
      EXPECT_TRUE(dropped(plan).empty()) << "seed " << seed << " step " << i;
      if (request.urgency == Urgency::kPressed && drops_alone > 0) {
        EXPECT_GT(plan.missing_bytes, 0U) << "seed " << seed << " step " << i;
      }
    }
  }
}

TEST_P(PolicyContract, EqualCallsGiveEqualPlans) {
  RandomSession a(GetParam(), test_options(), 9);
  RandomSession b(GetParam(), test_options(), 9);
  for (int i = 0; i < 200; ++i) {
    a.step();
    b.step();
    const std::uint64_t budget = a.oracle().bytes() / 2;
    expect_same(a.policy().plan({budget, Urgency::kPressed, 0}),
                b.policy().plan({budget, Urgency::kPressed, 0}));
  }
}

TEST_P(PolicyContract, ACloneGoesOnAsIfItHadSeenItAll) {
  RandomSession session(GetParam(), test_options(), 11);
  for (int i = 0; i < 300; ++i) session.step();
  const EvictionPolicyHandle clone = session.policy().clone();
  EXPECT_EQ(clone->name(), session.policy().name());
  const std::uint64_t all = session.oracle().bytes();
  for (int part = 0; part < 8; ++part) {
    const PlanRequest request{all * static_cast<std::uint64_t>(part) / 8, Urgency::kPressed, 0.01};
    expect_same(clone->plan(request), session.policy().plan(request));
  }
  for (const auto& [id, meta] : session.oracle().pages()) {
    EXPECT_EQ(clone->explain(TrackedPageId(id)).sentence,
              session.policy().explain(TrackedPageId(id)).sentence);
  }
  // From here on each goes its own way.
  const EvictionPlan before = session.policy().plan({all / 2, Urgency::kPressed, 0.01});
  for (const auto& [id, meta] : session.oracle().pages()) clone->release(TrackedPageId(id));
  EXPECT_EQ(clone->tracked_bytes(), 0U);
  expect_same(session.policy().plan({all / 2, Urgency::kPressed, 0.01}), before);
}

TEST_P(PolicyContract, EveryPageIsExplained) {
  RandomSession session(GetParam(), test_options(), 3);
  for (int i = 0; i < 100; ++i) session.step();
  for (const auto& [id, meta] : session.oracle().pages()) {
    const Explanation why = session.policy().explain(TrackedPageId(id));
    EXPECT_EQ(why.region, meta.region);
    EXPECT_TRUE(std::isfinite(why.score));
    EXPECT_FALSE(why.sentence.empty());
    EXPECT_EQ(why.shield == Shield::kNewest, session.oracle().newest(meta) && meta.sealed &&
                                                 meta.position >= session.protection().sink_tokens);
  }
  EXPECT_EQ(session.policy().explain(TrackedPageId(99999)).shield, Shield::kUntracked);
}

TEST_P(PolicyContract, WantsTheEvidenceThatItReadsAndNoOther) {
  for (std::size_t number = 0; number < kEvidenceKindCount; ++number) {
    const auto kind = static_cast<EvidenceKind>(number);
    PolicyOptions options = test_options();
    options.protect_prefix = number % 2 == 0;
    const auto policy = make_policy(GetParam(), options).value();
    PageMeta meta;
    for (int page = 0; page < 20; ++page) {
      meta.id = TrackedPageId(page);
      meta.tokens = 32;
      meta.position = 32 * page;
      meta.born_step = meta.position;
      meta.bytes = 3200;
      policy->track(meta);
    }
    policy->advance({640, 1.0});
    const auto scores = [&] {
      std::vector<double> all;
      for (int page = 0; page < 20; ++page)
        all.push_back(policy->explain(TrackedPageId(page)).score);
      return all;
    };
    const std::vector<double> before = scores();
    std::vector<PageEvidence> pages;
    for (int page = 0; page < 20; ++page)
      pages.push_back({TrackedPageId(page), 0.01F * static_cast<float>(page)});
    policy->observe({kind, QueryPhase::kAct, pages});
    EXPECT_EQ(scores() != before, policy->wants(kind)) << "kind " << number;
  }
}

std::string test_name(const testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyContract,
                         testing::ValuesIn(policy_names().begin(), policy_names().end()),
                         test_name);

// All pages observed before any plan: a page without evidence counts as the mean of its time, which
// the naive score leaves out.
TEST(MemdecayPolicy, PlansAreThoseOfScoresRecomputedFromAllHistory) {
  int plans = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomSession session("memdecay", test_options(), seed);
    for (int i = 0; i < 150; ++i) {
      session.step();
      if (i % 5 != 0) continue;
      session.observe_all();
      ++plans;
      const std::uint64_t budget = session.random()() % (session.oracle().bytes() + 1);
      const EvictionPlan plan = session.policy().plan({budget, Urgency::kPressed, 0});
      const auto naive = session.oracle().drops(
          budget, false,
          [&](const PageMeta& meta, Region as) { return session.naive_score(meta, as); });
      ASSERT_EQ(dropped(plan), naive) << "seed " << seed << " step " << i;
    }
  }
  EXPECT_EQ(plans, 40 * 30);
}

TEST(MakePolicy, UnknownNamesAreAnsweredWithTheKnown) {
  const auto result = make_policy("lfu");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_NE(result.status().message().find("memdecay-classic"), std::string::npos);
  EXPECT_EQ(policy_names().size(), 11U);
}

}  // namespace
}  // namespace memdecay
