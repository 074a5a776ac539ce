#include "eval/metrics/region_fates.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

std::vector<RegionSpan> regions() {
  std::vector<RegionSpan> spans(4);
  spans[0] = {{0, 40}, Region::kSystem};
  spans[1] = {{40, 50}, Region::kDecision};
  spans[2] = {{50, 150}, Region::kTool};
  spans[3] = {{150, 160}, Region::kDecision};
  return spans;
}

TEST(RegionFates, KeptCountsTheTokensThatAreHeldWhateverPageTheyLieIn) {
  const std::vector<PositionRun> everything = {{0, 160}};
  EXPECT_EQ(kept_shares(regions(), everything),
            (std::map<std::string, double>{{"system", 1}, {"decision", 1}, {"tool", 1}}));
  const std::vector<PositionRun> some = {{0, 45}, {60, 10}, {100, 25}, {155, 5}};
  EXPECT_EQ(kept_shares(regions(), some),
            (std::map<std::string, double>{{"system", 1}, {"decision", 0.5}, {"tool", 0.35}}));
  EXPECT_EQ(kept_shares(regions(), {}).at("tool"), 0);
}

TEST(RegionFates, TokensWithinRunsAreCounted) {
  const std::vector<PositionRun> runs = {{0, 4}, {10, 5}, {30, 10}};
  EXPECT_EQ(tokens_within({2, 35}, runs), 2 + 5 + 5);
  EXPECT_EQ(tokens_within({4, 10}, runs), 0);
  EXPECT_EQ(tokens_within({0, 9}, {}), 0);
}

TEST(RegionFates, AgesAreFromATokenToWhenItWasLetGo) {
  const std::vector<RegionSpan> spans = regions();
  DropAges ages(spans);
  ages.look(std::vector<PositionRun>{{0, 60}, {70, 30}}, 100);   // 60 to 69: 31 to 40 tokens old
  ages.look(std::vector<PositionRun>{{0, 40}, {50, 110}}, 160);  // 60 to 69 are back
  const auto lives = ages.lives(160);
  const auto of = [&](const char* region) {
    std::vector<std::array<std::int64_t, 3>> counts;
    for (const LifeCount& count : lives.at(region))
      counts.push_back({count.steps, count.ended, count.censored});
    return counts;
  };
  using Counts = std::vector<std::array<std::int64_t, 3>>;
  EXPECT_EQ(of("decision"), (Counts{{32, 0, 10}, {128, 10, 0}}));
  EXPECT_EQ(of("tool"), (Counts{{32, 2, 22}, {64, 8, 32}, {96, 0, 26}, {128, 0, 10}}));
  EXPECT_EQ(of("system"), (Counts{{128, 0, 8}, {160, 0, 32}}));
}

}  // namespace
}  // namespace memdecay
