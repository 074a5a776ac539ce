// KvCache against ReferenceCache: random appends with cuts, cut backs, drops, changes of form,
// packing, forks, adoptions, closes and budget squeezes.
// Each seed is printed; walk_seeds.h says how to choose one.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/units.h"
#include "kv/reference_cache.h"
#include "walk_seeds.h"

namespace memdecay {
namespace {

struct Case {
  const char* name;
  std::vector<std::int32_t> windows;  // one layer group each
  std::int32_t cut_back_tokens;
  std::uint64_t budget_bytes;
  std::int32_t max_pages;
};

KvCacheConfig config_of(const Case& c, int page_tokens, KvFormat format) {
  KvCacheConfig config;
  for (std::size_t g = 0; g < c.windows.size(); ++g) {
    const int layers = g == 0 ? 2 : 1;  // groups that differ
    config.groups.push_back({{.layers = layers,
                              .kv_heads = 2 - layers % 2,
                              .head_dim = 4,
                              .page_tokens = page_tokens,
                              .format = format},
                             c.windows[g]});
  }
  config.forms = {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4};
  config.budget_bytes = c.budget_bytes;
  config.cut_back_tokens = c.cut_back_tokens;
  config.max_pages = c.max_pages;
  return config;
}

class KvModel : public testing::TestWithParam<Case> {};

TEST_P(KvModel, ViewsEqualTheOracleAfterEveryOperation) {
  const std::uint64_t steps = steps_to_walk(400);
  for (const std::uint64_t seed : walk_seeds()) {
    ReferenceCache::Counts sum;
    std::uint64_t operations = 0;
    for (const int page_tokens : {16, 32, 64}) {
      const KvFormat format = page_tokens == 32 ? KvFormat::kF32 : KvFormat::kF16;
      ReferenceCache model(config_of(GetParam(), page_tokens, format));
      ASSERT_EQ(walk(model, seed + static_cast<std::uint64_t>(page_tokens), steps), "")
          << "replay with MEMDECAY_SEED=" << seed << ", pages of " << page_tokens;
      const ReferenceCache::Counts counts = model.counts();
      operations += model.steps();
      sum.refused += counts.refused;
      sum.cuts_refused += counts.cuts_refused;
      sum.forks += counts.forks;
      sum.copies += counts.copies;
      sum.dropped += counts.dropped;
      sum.replaced += counts.replaced;
      sum.packed += counts.packed;
      sum.adopted += counts.adopted;
      ASSERT_EQ(model.finish(), "") << "replay with MEMDECAY_SEED=" << seed;
    }
    std::fputs(
        fmt::format("MEMDECAY_SEED={}: {} operations, {} refused, {} cuts refused, {} forks, {} "
                    "pages copied, {} dropped, {} changes of form, {} packs, {} adoptions\n",
                    seed, operations, sum.refused, sum.cuts_refused, sum.forks, sum.copies,
                    sum.dropped, sum.replaced, sum.packed, sum.adopted)
            .c_str(),
        stdout);
    if (steps < 300) continue;
    // The run must have met what it is there to test.
    EXPECT_GT(sum.forks, 0U);
    EXPECT_GT(sum.copies, 0U);
    const auto& windows = GetParam().windows;
    const auto without = std::count(windows.begin(), windows.end(), 0);
    if (without > 0) {
      EXPECT_GT(std::min({sum.dropped, sum.replaced, sum.packed}), 10U);
    }
    if (without == std::ssize(windows)) {
      EXPECT_GT(sum.adopted, 10U);
    }
    if (GetParam().budget_bytes != KvBudget::kUnlimited || GetParam().max_pages > 0) {
      EXPECT_GT(sum.refused, 0U);
    }
  }
}

constexpr std::uint64_t kNoLimit = KvBudget::kUnlimited;

INSTANTIATE_TEST_SUITE_P(
    All, KvModel,
    testing::Values(Case{"one_group", {0}, 0, kNoLimit, 0},
                    Case{"one_group_tight", {0}, 0, 160 * kKiB, 0},
                    Case{"one_group_few_pages", {0}, 0, kNoLimit, 20},
                    Case{"global_and_window", {0, 48}, 0, 400 * kKiB, 0},
                    Case{"window_and_global_cut_back", {33, 0}, 24, 400 * kKiB, 0},
                    Case{"window_of_one", {1}, 0, 64 * kKiB, 0},
                    Case{"two_windows", {17, 100}, 5, 256 * kKiB, 30}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace memdecay
