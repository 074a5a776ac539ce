#include "kv/kv_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "core/units.h"
#include "kv/take_for_test.h"

namespace memdecay {
namespace {

constexpr LayerGroupId kGroup0(0);
constexpr LayerGroupId kGroup1(1);

// 2 layers x 1 head x (K, V) x 8 x 16 tokens x 2 bytes = 1024 bytes, one system page of budget.
KvPageLayout small_layout(int page_tokens = 16) {
  return {.layers = 2,
          .kv_heads = 1,
          .head_dim = 8,
          .page_tokens = page_tokens,
          .format = KvFormat::kF16};
}

std::unique_ptr<KvCache> make_cache(const KvCacheConfig& config) {
  auto cache = KvCache::create(config);
  EXPECT_TRUE(cache.ok()) << cache.status().message();
  return std::move(cache).value();
}

TEST(KvCache, RefusesWhatCannotWorkInWords) {
  const auto refuse = [](const KvCacheConfig& config) { return KvCache::create(config).status(); };
  EXPECT_EQ(refuse({.groups = {}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refuse({.groups = {{small_layout()}}, .budget_bytes = 0}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refuse({.groups = {{small_layout(17)}}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(refuse({.groups = {{small_layout(), -1}}}).code(), StatusCode::kInvalidArgument);
  const Status tiny = refuse({.groups = {{small_layout()}}, .budget_bytes = 5 * kKiB});
  EXPECT_EQ(tiny.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(tiny.message().find("5.00 KiB"), std::string::npos) << tiny.message();
}

TEST(KvCache, LeastBudgetThatIsAcceptedHoldsOneSequenceWithAPage) {
  std::uint64_t budget = 1 * kKiB;
  while (!KvCache::create({.groups = {{small_layout()}}, .budget_bytes = budget}).ok())
    budget += kKiB;
  const auto cache = make_cache({.groups = {{small_layout()}}, .budget_bytes = budget});
  const auto sequence = cache->try_create_sequence();
  ASSERT_NE(sequence, nullptr);
  EXPECT_TRUE(sequence->try_append(16));
  EXPECT_LE(cache->budget().peak_bytes(), budget);
  EXPECT_TRUE(cache->validate().ok());
}

TEST(KvCache, AClosedSequenceLeavesNothing) {
  const auto cache = make_cache({.groups = {{small_layout()}, {small_layout(32), 40}}});
  const std::uint64_t before = cache->budget().current_bytes();
  EXPECT_EQ(before, cache->overhead_bytes());
  {
    auto a = cache->try_create_sequence();
    ASSERT_TRUE(a->try_append(1000));
    auto b = a->try_fork();
    ASSERT_TRUE(b->try_append(7));
    a.reset();
    EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
    EXPECT_EQ(b->memory().shared_pages, 0);
  }
  EXPECT_EQ(cache->budget().current_bytes(), before);
  EXPECT_EQ(cache->sequence_count(), 0);
  EXPECT_TRUE(cache->validate().ok());
}

TEST(KvCache, BudgetIsStrictAndTheAnswerSaysWhatIsMissing) {
  const auto cache = make_cache({.groups = {{small_layout()}}, .budget_bytes = 1 * kMiB});
  auto sequence = cache->try_create_sequence();
  std::uint64_t bytes = 0;
  Room room;
  while ((room = sequence->try_append(16))) bytes = cache->budget().current_bytes();
  EXPECT_EQ(room.refusal, Room::Refusal::kBudget);
  EXPECT_EQ(room.missing_bytes,
            bytes_to_append(*sequence, *cache, 16) - cache->budget().free_bytes());
  EXPECT_EQ(cache->budget().current_bytes(), bytes);
  EXPECT_LE(cache->budget().peak_bytes(), 1 * kMiB);
  // Freeing exactly what was named makes the same append fit.
  const Position size = sequence->size();
  ASSERT_TRUE(sequence->try_truncate(size - 16));
  EXPECT_TRUE(sequence->try_append(16));
}

TEST(KvCache, PoolAndBudgetRefusalsAreToldApart) {
  const auto cache = make_cache({.groups = {{small_layout()}}, .max_pages = 3});
  auto sequence = cache->try_create_sequence();
  const Room room = sequence->try_append(16 * 5);
  EXPECT_EQ(room.refusal, Room::Refusal::kPool);
  EXPECT_EQ(room.missing_bytes, 2 * cache->pool(kGroup0).stride_bytes());
  EXPECT_EQ(sequence->size(), 0);
  EXPECT_TRUE(sequence->try_append(16 * 3));
}

TEST(KvCache, UsageCountsSharedPagesOnce) {
  const auto cache = make_cache({.groups = {{small_layout()}, {small_layout(64)}}});
  EXPECT_DOUBLE_EQ(cache->usage().utilisation(), 1.0);
  auto a = cache->try_create_sequence();
  ASSERT_TRUE(a->try_append(40));  // 3 pages of 16, 1 page of 64
  EXPECT_DOUBLE_EQ(cache->usage(kGroup0).utilisation(), 40.0 / 48);
  EXPECT_DOUBLE_EQ(cache->usage(kGroup1).utilisation(), 40.0 / 64);
  const auto b = a->try_fork();
  EXPECT_DOUBLE_EQ(cache->usage(kGroup0).filled_slots, 40);
  EXPECT_DOUBLE_EQ(cache->usage(kGroup0).allocated_slots, 48);
  ASSERT_TRUE(a->try_append(1));  // a copy of the last page in each group
  EXPECT_DOUBLE_EQ(cache->usage(kGroup0).filled_slots, 32 + 9 + 8);
  EXPECT_DOUBLE_EQ(cache->usage(kGroup0).allocated_slots, 64);
  EXPECT_DOUBLE_EQ(cache->usage(kGroup1).filled_slots, 41 + 40);
  const double bytes0 = 1024.0 / 16, bytes1 = 4096.0 / 64;
  EXPECT_DOUBLE_EQ(cache->usage().filled_bytes, 49 * bytes0 + 81 * bytes1);
  EXPECT_DOUBLE_EQ(cache->usage().allocated_bytes, 64 * bytes0 + 128 * bytes1);
}

TEST(KvCache, ValidateNamesBytesThatNobodyOwns) {
  const auto cache = make_cache({.groups = {{small_layout()}}});
  auto staging = cache->budget().try_reserve(100);
  EXPECT_EQ(cache->validate().code(), StatusCode::kCorrupt);
  EXPECT_TRUE(cache->validate(100).ok());
  staging.reset();
  EXPECT_TRUE(cache->validate().ok());
}

/// Bytes of a pool's range that are in memory now, as the kernel says.
std::uint64_t resident_bytes(const PagePool& pool) {
  const std::uint64_t unit = system_page_bytes();
  const std::uint64_t units =
      static_cast<std::uint64_t>(pool.max_pages()) * pool.stride_bytes() / unit;
  std::vector<unsigned char> present(units);
  EXPECT_EQ(mincore(pool.base(PageId(0)), units * unit, present.data()), 0);
  const auto in_memory = [](unsigned char state) { return (state & 1U) != 0; };
  return unit *
         static_cast<std::uint64_t>(std::count_if(present.begin(), present.end(), in_memory));
}

TEST(KvCache, ASmallBudgetHoldsForResidentMemoryToo) {
  const KvPageLayout layout{
      .layers = 30, .kv_heads = 3, .head_dim = 64, .page_tokens = 32, .format = KvFormat::kF16};
  const auto cache = make_cache({.groups = {{layout}, {layout, 200}}, .budget_bytes = 48 * kMiB});
  std::mt19937 random(5);
  std::vector<SequenceHandle> sequences;
  for (int step = 0; step < 200; ++step) {
    if (sequences.size() < 5) sequences.push_back(cache->try_create_sequence());
    const std::size_t which = random() % sequences.size();
    Sequence& sequence = *sequences[which];
    const Position size = sequence.size();
    if (random() % 4 == 0 || !sequence.try_append(static_cast<std::int32_t>(random() % 200))) {
      sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      for (const LayerGroupId group : {kGroup0, kGroup1})
        for (const KvPageRef& page : sequence.view(group).pages)
          if (page.first_position >= size)
            std::fill_n(page.base, layout.page_bytes(), std::byte{1});
    }
    for (const LayerGroupId group : {kGroup0, kGroup1})
      ASSERT_LE(resident_bytes(cache->pool(group)), cache->pool(group).counters().page_bytes);
  }
  sequences.clear();
  EXPECT_EQ(resident_bytes(cache->pool(kGroup0)) + resident_bytes(cache->pool(kGroup1)), 0U);
}

TEST(KvCacheDeathTest, SequencesDieBeforeTheirCache) {
  auto cache = make_cache({.groups = {{small_layout()}}});
  auto sequence = cache->try_create_sequence();
  EXPECT_DEATH(cache.reset(), "sequence_count_ == 0");
}

}  // namespace
}  // namespace memdecay
