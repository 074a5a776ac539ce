// KvCache against ReferenceCache: random appends with cuts, cut backs, drops, changes of form,
// packing, forks, adoptions, closes and budget squeezes.
//
// Two seeds a run, one fixed and one new; both are printed. MEMDECAY_SEED=N runs that one alone,
// MEMDECAY_STEPS=N sets the number of operations per configuration.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/units.h"
#include "kv/reference_cache.h"

namespace memdecay {
namespace {

struct Case {
  const char* name;
  std::vector<std::int32_t> windows;  // one layer group each
  std::int32_t cut_back_tokens;
  std::uint64_t budget_bytes;
  std::int32_t max_pages;
};

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::vector<std::uint64_t> seeds() {
  const std::uint64_t given = number_from_environment("MEMDECAY_SEED", 0);
  if (given != 0) return {given};
  std::random_device entropy;
  return {1, std::uint64_t{entropy()} + 2};
}

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
  const std::uint64_t steps = number_from_environment("MEMDECAY_STEPS", 400);
  for (const std::uint64_t seed : seeds()) {
    ReferenceCache::Counts sum;
    for (const int page_tokens : {16, 32, 64}) {
      const KvFormat format = page_tokens == 32 ? KvFormat::kF32 : KvFormat::kF16;
      ReferenceCache model(config_of(GetParam(), page_tokens, format));
      std::mt19937_64 random(seed + static_cast<std::uint64_t>(page_tokens));
      const auto choose = [&](std::uint32_t bound) {
        return static_cast<std::uint32_t>(random() % bound);
      };
      for (std::uint64_t i = 0; i < steps; ++i) {
        const std::string trouble = model.step(choose);
        ASSERT_EQ(trouble, "") << "replay with MEMDECAY_SEED=" << seed << ", pages of "
                               << page_tokens;
      }
      const ReferenceCache::Counts counts = model.counts();
      sum.steps += counts.steps;
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
                    seed, sum.steps, sum.refused, sum.cuts_refused, sum.forks, sum.copies,
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
