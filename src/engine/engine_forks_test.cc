// Forks under a budget: what several sessions hold gives no bytes back, so it is neither packed nor
// demoted in place of what would, and what cannot be demoted stands in nobody's way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/engine.h"
#include "engine/extend_without_logits.h"
#include "engine/model_file_for_test.h"
#include "kv/take_for_test.h"

namespace memdecay {
namespace {

constexpr int kPageTokens = 16;

class EngineForksTest : public testing::Test {
 protected:
  EngineOptions options(int pages, const char* policy, bool share = false) const {
    EngineOptions options = file_.options();
    options.policy = policy;
    options.context_tokens = 4096;
    options.share_prefixes = share;
    options.adaptive_decay = false;
    options.kv_budget_bytes = 96 * 1024 + file_.bytes_of_pages(pages);
    return options;
  }
  ModelFile file_{"llama", RandomModelShape{}};
};

void append(Engine& engine, Session& session, int tokens, std::uint32_t seed) {
  const Status status = extend_without_logits(engine, session, random_prompt(tokens, seed));
  ASSERT_TRUE(status.ok()) << status.message();
}

/// Takes what is free of the engine's budget.
BudgetReservation fill_budget(Engine& engine) {
  KvBudget& budget = budget_of(engine);
  return take_bytes(budget, budget.free_bytes());
}

PromptLabels small_spans(int tokens) {
  PromptLabels labels;
  RegionSpan span;
  span.region = Region::kTool;
  for (Position at = 0; at < tokens; at += 6) {  // too small for a page each
    span.tokens = {at, std::min<Position>(at + 6, tokens)};
    labels.regions.push_back(span);
  }
  labels.exact.assign(static_cast<std::size_t>(tokens), 0);
  labels.phases.assign(static_cast<std::size_t>(tokens), QueryPhase::kOther);
  return labels;
}

TEST_F(EngineForksTest, AForkKnowsWhatWasSeenOfItsPages) {
  const auto engine = ModelFile::engine(options(400, "h2o"));
  const auto parent = engine->open_session().value();
  append(*engine, *parent, 240, 1);
  const auto fork = engine->fork_session(*parent).value();
  const auto& pages = parent->memory()->pages();
  ASSERT_EQ(fork->memory()->pages().size(), pages.size());
  bool any = false;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const Explanation seen = parent->memory()->explain(pages[i]);
    EXPECT_EQ(fork->memory()->explain(fork->memory()->pages()[i]).sentence, seen.sentence);
    any = any || seen.score > 0;
  }
  EXPECT_TRUE(any) << "attention was summed";
}

TEST_F(EngineForksTest, AForkThatStandsApartLeavesItsParentAsItIs) {
  for (const char* policy : {"h2o", "window"}) {
    std::vector<std::vector<std::vector<PositionRun>>> held;
    for (const bool asked : {false, true}) {
      const auto engine = ModelFile::engine(options(400, policy));
      SessionOptions own;
      own.budget_bytes = file_.bytes_of_pages(14);
      own.watermarks = {0.7, 0.5, 0.4};  // passes have something to do for those that wait
      const auto parent = engine->open_session(own).value();
      engine->label(*parent, small_spans(480));
      std::vector<std::vector<PositionRun>>& runs = held.emplace_back();
      for (std::uint32_t i = 0; i < 40; ++i) {
        append(*engine, *parent, 12, i);
        runs.push_back(engine->held_tokens(*parent));
        if (!asked) continue;
        const auto fork = engine->fork_session(*parent).value();
        fork->stand_apart();
        append(*engine, *fork, 40, 100 + i);
        ASSERT_EQ(engine->held_tokens(*parent), runs.back());
      }
      EXPECT_GT(parent->memory()->evicted_tokens(), 0);
      EXPECT_GT(parent->memory()->eviction_seconds(), 0);
      expect_sound(*engine);
    }
    EXPECT_EQ(held[0], held[1]) << policy;
  }
}

TEST_F(EngineForksTest, AForkThatStandsApartTakesNoPinsOfItsParent) {
  EngineOptions tight = options(40, "window");
  tight.kv_forms = KvForms::kF16;
  tight.protect_prefix = true;
  const auto engine = ModelFile::engine(tight);
  const auto parent = engine->open_session().value();
  engine->label(*parent, system_labels(18 * kPageTokens));
  append(*engine, *parent, 600, 1);
  const std::vector<PositionRun> held = engine->held_tokens(*parent);
  ASSERT_GE(held.front().tokens, 18 * kPageTokens) << "the pins";
  {
    const auto fork = engine->fork_session(*parent).value();
    fork->stand_apart();
    // More than there is room for: whatever the fork drops is its parent's still.
    while (extend_without_logits(*engine, *fork, random_prompt(64, 2)).ok() &&
           fork->tokens().size() < 2000) {
    }
    EXPECT_EQ(engine->held_tokens(*parent), held);
  }
  append(*engine, *parent, 64, 3);
  EXPECT_GE(engine->held_tokens(*parent).front().tokens, 18 * kPageTokens);
}

TEST_F(EngineForksTest, AForkPacksWhatIsItsOwn) {
  const auto engine = ModelFile::engine(options(400, "lru", /*share=*/true));
  const auto parent = engine->open_session().value();
  engine->label(*parent, small_spans(480));
  // So fast that only some pages are packed before the fork shares the rest, and what stands behind
  // a packed page is not remembered either.
  append(*engine, *parent, 240, 1);
  ASSERT_LT(parent->sequence().exact_tokens(), 240);
  const auto fork = engine->fork_session(*parent).value();
  for (std::uint32_t i = 0; i < 20; ++i) append(*engine, *fork, 12, i);
  int shared = 0, own = 0;
  double filled = 0;
  const auto& handles = fork->sequence().table(LayerGroupId(0)).pages();
  const auto& pages = fork->memory()->pages();
  ASSERT_EQ(pages.size(), handles.size());
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (pages[i].first_position < 240) {
      shared += handles[i].exclusive() ? 0 : 1;
    } else {
      ++own;
      filled += pages[i].filled;
    }
  }
  EXPECT_GT(shared, 10);
  EXPECT_GT(filled / (own * kPageTokens), 0.7) << "0.375 as they came";
  expect_sound(*engine);
}

TEST_F(EngineForksTest, NothingIsForgottenWhileAPageOfItsOwnCanTakeFewerBits) {
  for (const char* policy : {"lru", "memdecay"}) {
    const auto engine = ModelFile::engine(options(40, policy));
    const auto parent = engine->open_session().value();
    append(*engine, *parent, 20 * kPageTokens, 1);
    const auto fork = engine->fork_session(*parent).value();
    for (std::uint32_t i = 0; i < 32; ++i) {
      append(*engine, *fork, kPageTokens, i);
      expect_sound(*engine);
    }
    EXPECT_EQ(parent->memory()->evicted_tokens(), 0) << policy;
    EXPECT_EQ(fork->memory()->evicted_tokens(), 0) << policy;
  }
}

TEST_F(EngineForksTest, WhatWasSharedTakesFewerBitsOnceItIsNot) {
  const auto engine = ModelFile::engine(options(40, "lru"));
  auto parent = engine->open_session().value();
  append(*engine, *parent, 20 * kPageTokens, 1);
  const auto fork = engine->fork_session(*parent).value();
  append(*engine, *fork, 12 * kPageTokens, 2);
  const auto coarse_before = [&](Position end) {
    const auto& pages = fork->memory()->pages();
    return std::count_if(pages.begin(), pages.end(), [&](const auto& page) {
      return page.first_position < end && page.format != KvFormat::kF16;
    });
  };
  parent.reset();
  append(*engine, *fork, 30 * kPageTokens, 3);
  EXPECT_GT(coarse_before(20 * kPageTokens), 10);
  EXPECT_EQ(fork->memory()->evicted_tokens(), 0);
  expect_sound(*engine);
}

TEST_F(EngineForksTest, ACopyOfASharedPageDoesNotTakeTheRoomThatIsHeldForOthers) {
  const auto engine = ModelFile::engine(options(60, "lru"));
  const auto parent = engine->open_session().value();
  append(*engine, *parent, 20 * kPageTokens, 1);
  const auto fork = engine->fork_session(*parent).value();
  const std::uint64_t held = engine->other_budget_bytes();
  ASSERT_GT(held, 0U);
  {
    const BudgetReservation rest = fill_budget(*engine);
    const std::uint64_t bytes = fork->memory()->tracked_bytes() * 3 / 4;
    EXPECT_TRUE(engine->shrink(*fork, bytes).ok());
    EXPECT_LE(fork->memory()->tracked_bytes(), bytes);
    EXPECT_EQ(engine->other_budget_bytes(), held);
  }
  expect_sound(*engine);
}

TEST_F(EngineForksTest, WhatIsSharedDoesNotMakeAForkDropWhatIsItsOwn) {
  const auto engine = ModelFile::engine(options(80, "lru"));
  const auto parent = engine->open_session().value();
  append(*engine, *parent, 20 * kPageTokens, 1);
  const auto fork = engine->fork_session(*parent).value();
  append(*engine, *fork, 20 * kPageTokens, 2);
  {
    const BudgetReservation rest = fill_budget(*engine);  // no room to copy a shared page in
    const std::uint64_t held = fork->memory()->tracked_bytes();
    EXPECT_TRUE(engine->shrink(*fork, held - held / 8).ok());
    EXPECT_EQ(fork->memory()->evicted_tokens(), 0) << "its own pages can take fewer bits";
  }
  expect_sound(*engine);
}

TEST_F(EngineForksTest, APageThatNoFormCanHoldStandsInNobodysWay) {
  const auto engine = ModelFile::engine(options(60, "lru"));
  const auto session = engine->open_session().value();
  append(*engine, *session, 24 * kPageTokens, 1);
  const KvPageRef damaged =
      session->sequence().page_for_write(LayerGroupId(0), 3 * kPageTokens + 1);
  std::memset(damaged.base, 0x7C, engine->cache().groups().front().layout.page_bytes());  // NaN
  const std::uint64_t tracked = session->memory()->tracked_bytes();
  ASSERT_TRUE(engine->shrink(*session, tracked * 2 / 3).ok());
  EXPECT_EQ(session->memory()->evicted_tokens(), 0);
  const auto& pages = session->memory()->pages();
  EXPECT_EQ(pages[3].format, KvFormat::kF16);
  EXPECT_GT(std::count_if(pages.begin(), pages.end(),
                          [](const auto& page) { return page.format != KvFormat::kF16; }),
            8);
  PlanRequest all;
  all.budget_bytes = 0;
  all.may_drop = false;
  const EvictionPlan plan = session->memory()->plan(all);
  EXPECT_GT(plan.actions.size(), 8U);
  for (const PlanAction& action : plan.actions) EXPECT_NE(action.page, pages[3].id);
  expect_sound(*engine);
}

}  // namespace
}  // namespace memdecay
