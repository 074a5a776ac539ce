// PrefixTree against PrefixOracle: random lookups, insertions, releases, adoptions by sequences,
// evictions and forgetting, for two tenants, with and without a window, and with one key for all.
// Each seed is printed; walk_seeds.h says how to choose one.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "kv/prefix/prefix_model.h"
#include "walk_seeds.h"

namespace memdecay {
namespace {

struct Case {
  const char* name;
  PrefixWorld::Shape shape;
};

class PrefixModelTest : public testing::TestWithParam<Case> {};

TEST_P(PrefixModelTest, TheTreeEqualsTheOracleAfterEveryOperation) {
  const std::uint64_t steps = steps_to_walk(3000);
  for (const std::uint64_t seed : walk_seeds()) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    PrefixModel model(GetParam().shape);
    ASSERT_EQ(walk(model, seed, steps), "") << "replay with MEMDECAY_SEED=" << seed;
    const PrefixModel::Counts& counts = model.counts();
    std::printf(
        "%zu pages at most, %llu whole and %llu partial hits, %llu duplicates, %llu refused\n",
        counts.most_pages, static_cast<unsigned long long>(counts.whole_hits),
        static_cast<unsigned long long>(counts.partial_hits),
        static_cast<unsigned long long>(counts.present),
        static_cast<unsigned long long>(counts.refused));
    // The walk went everywhere: asked of the seed that is always the same, since how often a random
    // one comes by each place is chance.
    if (seed == kFirstSeed && steps >= 1000) {
      EXPECT_GT(counts.whole_hits, steps / 50);
      EXPECT_GT(counts.partial_hits, steps / 100);
      EXPECT_GT(counts.present, steps / 100);
      EXPECT_GT(counts.evicted, steps / 100);
      EXPECT_GT(counts.forgotten, 0U);
      EXPECT_GT(counts.most_pages, 8U);
    }
    ASSERT_EQ(model.finish(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PrefixModelTest,
    testing::Values(Case{"roomy", {.pool_pages = 64}}, Case{"tight", {.budget_bytes = 150'123}},
                    Case{"window", {.window = 20}},
                    Case{"narrow_window_tight", {.window = 3, .budget_bytes = 200'123}},
                    Case{"one_key", {.window = 20, .budget_bytes = 300'123, .one_key = true}}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace memdecay
