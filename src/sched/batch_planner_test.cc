#include "sched/batch_planner.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace memdecay {

bool operator==(const PlannedTokens& a, const PlannedTokens& b) {
  return a.request == b.request && a.tokens == b.tokens;
}

namespace {

using Plan = std::vector<PlannedTokens>;

TEST(BatchPlanner, NothingWaitsNothingIsPlanned) {
  EXPECT_EQ(BatchPlanner(8, 4).plan({}), Plan());
}

TEST(BatchPlanner, DecodeComesFirstAndPromptsShareOneChunk) {
  const BatchPlanner planner(512, 128);
  EXPECT_EQ(planner.plan({{0, 1000}, {1, 1}, {2, 60}, {3, 1}}), (Plan{{1, 1}, {3, 1}, {0, 128}}));
  EXPECT_EQ(planner.plan({{0, 100}, {1, 1}, {2, 60}}), (Plan{{1, 1}, {0, 100}, {2, 28}}));
}

TEST(BatchPlanner, PromptsAloneFillThePass) {
  EXPECT_EQ(BatchPlanner(512, 128).plan({{0, 300}, {1, 300}}), (Plan{{0, 300}, {1, 212}}));
}

TEST(BatchPlanner, MoreStreamsThanThePassHoldsWaitInOrder) {
  EXPECT_EQ(BatchPlanner(2, 2).plan({{0, 1}, {1, 1}, {2, 1}, {3, 9}}), (Plan{{0, 1}, {1, 1}}));
}

TEST(BatchPlanner, RandomWaitingListsKeepTheInvariants) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const int max_tokens = 1 + static_cast<int>(random() % 64);
    const int chunk = 1 + static_cast<int>(random() % 64);
    std::vector<WaitingTokens> waiting;
    for (std::size_t i = 0; i < random() % 12; ++i)
      waiting.push_back({i, 1 + static_cast<int>(random() % 40)});
    const Plan plan = BatchPlanner(max_tokens, chunk).plan(waiting);
    std::vector<bool> seen(waiting.size(), false);
    int total = 0;
    for (const PlannedTokens& item : plan) {
      EXPECT_FALSE(seen[item.request]);
      seen[item.request] = true;
      EXPECT_GE(item.tokens, 1);
      EXPECT_LE(item.tokens, waiting[item.request].tokens);
      total += item.tokens;
    }
    EXPECT_LE(total, max_tokens);
    EXPECT_EQ(plan.empty(), waiting.empty());
  }
}

}  // namespace
}  // namespace memdecay
