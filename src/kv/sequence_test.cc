#include "kv/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/units.h"
#include "kv/kv_cache.h"
#include "kv/take_for_test.h"
#include "sys/memory_denied_for_test.h"

namespace memdecay {
namespace {

constexpr LayerGroupId kGlobal(0);
constexpr LayerGroupId kWindowed(1);

KvLayerGroup group(std::int32_t window, int page_tokens = 16) {
  return {{.layers = 1,
           .kv_heads = 1,
           .head_dim = 4,
           .page_tokens = page_tokens,
           .format = KvFormat::kF32},
          window};
}

std::unique_ptr<KvCache> make_cache(const KvCacheConfig& config) {
  return std::move(KvCache::create(config)).value();
}

/// What a view shows, as plain values that outlive it.
struct Snapshot {
  Position size;
  std::vector<std::byte*> bases;
  std::vector<std::int32_t> numbers;
  bool operator==(const Snapshot&) const = default;
};

Snapshot snapshot(const KvCache& cache, const Sequence& sequence) {
  Snapshot shot{sequence.size(), {}, {}};
  for (std::size_t g = 0; g < cache.groups().size(); ++g) {
    const PagedKvView view = sequence.view(LayerGroupId(static_cast<std::int32_t>(g)));
    shot.numbers.push_back(view.first_page_number);
    for (const KvPageRef& page : view.pages) {
      shot.bases.push_back(page.base);
      shot.numbers.push_back(page.filled);
    }
  }
  return shot;
}

TEST(Sequence, ViewsHaveFullPagesButTheLast) {
  for (const int page_tokens : {16, 32, 64}) {
    const auto cache = make_cache({.groups = {group(0, page_tokens)}});
    auto sequence = cache->try_create_sequence();
    EXPECT_TRUE(sequence->view(kGlobal).pages.empty());
    for (Position size = 1; size <= 3 * page_tokens + 1; ++size) {
      ASSERT_TRUE(sequence->try_append(1));
      const PagedKvView view = sequence->view(kGlobal);
      ASSERT_EQ(view.layout->page_tokens, page_tokens);
      ASSERT_EQ(view.pages.size(),
                static_cast<std::size_t>((size + page_tokens - 1) / page_tokens));
      for (std::size_t i = 0; i < view.pages.size(); ++i) {
        const bool last = i + 1 == view.pages.size();
        ASSERT_EQ(view.pages[i].first_position, static_cast<Position>(i) * page_tokens);
        ASSERT_EQ(view.pages[i].filled, last ? (size - 1) % page_tokens + 1 : page_tokens);
      }
    }
  }
}

TEST(Sequence, AppendingNothingIsFree) {
  const auto cache = make_cache({.groups = {group(0)}});
  auto sequence = cache->try_create_sequence();
  EXPECT_EQ(bytes_to_append(*sequence, *cache, 0), 0U);
  EXPECT_TRUE(sequence->try_append(0));
  ASSERT_TRUE(sequence->try_append(5));
  const auto fork = sequence->try_fork();
  EXPECT_TRUE(sequence->try_append(0));  // no copy of the shared page
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 0U);
}

TEST(Sequence, ForkSharesAndTheFirstWriterCopies) {
  const auto cache = make_cache({.groups = {group(0)}});
  auto a = cache->try_create_sequence();
  ASSERT_TRUE(a->try_append(40));
  auto b = a->try_fork();
  EXPECT_NE(a->id(), b->id());
  EXPECT_EQ(cache->pool(kGlobal).counters().used_pages, 3);
  EXPECT_EQ(b->memory().shared_pages, 3);
  EXPECT_EQ(snapshot(*cache, *a), snapshot(*cache, *b));

  const Snapshot b_before = snapshot(*cache, *b);
  ASSERT_TRUE(a->try_append(1));
  EXPECT_EQ(snapshot(*cache, *b), b_before);
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 1U);
  EXPECT_EQ(a->memory().shared_pages, 2);
  ASSERT_TRUE(b->try_append(1));  // b holds the old page alone now
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 1U);
  EXPECT_EQ(cache->pool(kGlobal).counters().used_pages, 4);
}

TEST(Sequence, AFullSharedPageIsNeverCopied) {
  const auto cache = make_cache({.groups = {group(0)}});
  auto a = cache->try_create_sequence();
  ASSERT_TRUE(a->try_append(32));
  auto b = a->try_fork();
  ASSERT_TRUE(a->try_append(1));
  ASSERT_TRUE(b->try_append(1));
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 0U);
  // Cut back into it, and it is copied when it is written again.
  ASSERT_TRUE(a->try_truncate(20));
  ASSERT_TRUE(a->try_append(1));
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 1U);
  EXPECT_EQ(b->view(kGlobal).pages[1].filled, 16);
}

TEST(Sequence, TruncateFreesPagesAtTheirBorders) {
  const auto cache = make_cache({.groups = {group(0)}});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(64));
  for (const Position to : {64, 63, 49, 48, 47, 33, 17, 16, 15, 1, 0}) {
    ASSERT_TRUE(sequence->try_truncate(to));
    EXPECT_EQ(sequence->size(), to);
    EXPECT_EQ(cache->pool(kGlobal).counters().used_pages, (to + 15) / 16);
    EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
  }
  EXPECT_TRUE(sequence->try_append(20));
}

TEST(Sequence, AWindowKeepsWhatTheNextQuerySeesAndNoPageMore) {
  for (const std::int32_t window : {1, 2, 15, 16, 17, 40}) {
    const auto cache = make_cache({.groups = {group(0), group(window)}});
    auto sequence = cache->try_create_sequence();
    for (Position size = 0; size < 150; ++size) {
      ASSERT_TRUE(sequence->try_append(1));
      // Trimmed for the query at `size`, which sees positions > size - window.
      const Position oldest = std::max(0, size - window + 1);
      EXPECT_EQ(sequence->view(kWindowed).first_page_number, oldest / 16) << window << " " << size;
      EXPECT_EQ(sequence->view(kGlobal).first_page_number, 0);
    }
    sequence->trim();
    EXPECT_EQ(sequence->view(kWindowed).first_page_number, std::max(0, 150 - window + 1) / 16);
    EXPECT_TRUE(cache->validate().ok()) << cache->validate().message();
  }
}

TEST(Sequence, AChunkSeesItsWindowAndItself) {
  const auto cache = make_cache({.groups = {group(0), group(20)}});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(100));
  ASSERT_TRUE(sequence->try_append(70));  // queries 100..169; the first sees 81..100
  const PagedKvView view = sequence->view(kWindowed);
  EXPECT_EQ(view.first_page_number, 81 / 16);
  EXPECT_EQ(view.pages.front().first_position, 80);
  EXPECT_EQ(view.pages.back().first_position + view.pages.back().filled, 170);
}

TEST(Sequence, ACutIntoALostWindowIsRefused) {
  const auto cache = make_cache({.groups = {group(0), group(20)}});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(100));
  ASSERT_TRUE(sequence->try_append(1));  // the windowed group starts at 80
  EXPECT_EQ(sequence->earliest_cut(), 80 + 20 - 1);
  const Snapshot before = snapshot(*cache, *sequence);
  EXPECT_FALSE(sequence->try_truncate(98));
  EXPECT_EQ(snapshot(*cache, *sequence), before);
  EXPECT_TRUE(sequence->try_truncate(99));
  EXPECT_TRUE(sequence->try_truncate(0));
  EXPECT_EQ(sequence->earliest_cut(), 1);
  EXPECT_EQ(sequence->view(kWindowed).first_page_number, 0);
}

TEST(Sequence, CutBackTokensAreKeptBehindTheWindow) {
  const auto cache = make_cache({.groups = {group(0), group(20)}, .cut_back_tokens = 30});
  auto sequence = cache->try_create_sequence();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(sequence->try_append(1));
    ASSERT_LE(sequence->earliest_cut(), std::max(1, i - 30));
  }
}

TEST(Sequence, EveryRefusalLeavesEverythingUnchanged) {
  // Whatever number of bytes is free, from nothing to just enough, append and fork either happen
  // or change nothing. The append needs a copy, new pages in two groups and larger tables.
  const auto cache = make_cache({.groups = {group(0), group(40)}, .budget_bytes = 2 * kMiB});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(8 * 16 - 3));
  const auto sharer = sequence->try_fork();
  sequence->trim();
  const std::uint64_t need = bytes_to_append(*sequence, *cache, 100);
  const Snapshot before = snapshot(*cache, *sequence);
  KvBudget& budget = cache->budget();
  for (std::uint64_t leave = 0; leave < need; leave += leave % 4096 < 4000 ? 97 : 1) {
    auto ballast = take_bytes(budget, budget.free_bytes() - leave);
    const std::uint64_t bytes = budget.current_bytes();
    const Room room = sequence->try_append(100);
    ASSERT_EQ(room.refusal, Room::Refusal::kBudget);
    ASSERT_EQ(room.missing_bytes, need - leave);
    const auto fork = sequence->try_fork();
    if (fork == nullptr) {
      ASSERT_EQ(budget.current_bytes(), bytes);
    }
    ASSERT_EQ(snapshot(*cache, *sequence), before);
    ASSERT_TRUE(cache->validate(ballast.bytes()).ok());
  }
  const auto ballast = take_bytes(budget, budget.free_bytes() - need);
  EXPECT_TRUE(sequence->try_append(100));
  EXPECT_EQ(budget.peak_bytes(), budget.limit_bytes());
}

TEST(Sequence, ARecordThatFindsNoRoomIsNull) {
  const auto cache = make_cache({.groups = {group(0)}, .budget_bytes = kMiB});
  auto ballast = take_bytes(cache->budget(), cache->budget().free_bytes() - 10);
  EXPECT_EQ(cache->try_create_sequence(), nullptr);
  EXPECT_EQ(cache->sequence_count(), 0);
  ballast.release();
  EXPECT_NE(cache->try_create_sequence(), nullptr);
}

TEST(Sequence, ASystemWithoutMemoryRefusesTheWholeAppend) {
  if (!MemoryDenied::kPossible) GTEST_SKIP() << "a sanitizer needs memory";
  const auto cache = make_cache({.groups = {group(0), group(40)}});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(10));
  const Snapshot before = snapshot(*cache, *sequence);
  const std::uint64_t bytes = cache->budget().current_bytes();
  std::optional<MemoryDenied> denied(std::in_place);
  const Room room = sequence->try_append(100000);
  denied.reset();
  EXPECT_EQ(room.refusal, Room::Refusal::kSystem);
  EXPECT_EQ(snapshot(*cache, *sequence), before);
  EXPECT_EQ(cache->budget().current_bytes(), bytes);
  EXPECT_TRUE(cache->validate().ok());
  EXPECT_TRUE(sequence->try_append(100000));
}

TEST(Sequence, ABigPromptThenManyForksCostsTablesOnly) {
  const auto cache = make_cache({.groups = {group(0)}});
  auto prompt = cache->try_create_sequence();
  ASSERT_TRUE(prompt->try_append(1600));
  std::vector<SequenceHandle> forks;
  for (int i = 0; i < 50; ++i) forks.push_back(prompt->try_fork());
  EXPECT_EQ(cache->pool(kGlobal).counters().used_pages, 100);
  EXPECT_EQ(cache->pool(kGlobal).references(PageId(0)), 51);
  EXPECT_EQ(forks[0]->memory().exclusive_bytes, 0U);
  EXPECT_LT(forks[0]->memory().table_bytes, 5120U);
  forks.clear();
  EXPECT_EQ(prompt->memory().exclusive_pages, 100);
}

TEST(SequenceDeathTest, ASharedPageIsNeverWritten) {
  const auto cache = make_cache({.groups = {group(0)}});
  auto a = cache->try_create_sequence();
  ASSERT_TRUE(a->try_append(40));
  const auto b = a->try_fork();
  EXPECT_DEATH(static_cast<void>(a->page_for_write(kGlobal, 39)), "exclusive");
  EXPECT_DEATH(b->check_writable(0, 1), "exclusive");
  ASSERT_TRUE(a->try_append(1));
  a->check_writable(40, 41);
  a->check_writable(32, 41);  // the copied page is wholly a's own
  EXPECT_DEATH(a->check_writable(31, 41), "exclusive");
}

TEST(SequenceDeathTest, PositionsThatAreNotThereAreBugs) {
  const auto cache = make_cache({.groups = {group(0), group(1)}});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(40));
  EXPECT_DEATH(static_cast<void>(sequence->page_for_write(kGlobal, 40)), "CHECK failed");
  EXPECT_DEATH(static_cast<void>(sequence->page_for_write(kGlobal, -1)), "CHECK failed");
  EXPECT_DEATH(static_cast<void>(sequence->try_truncate(41)), "CHECK failed");
  EXPECT_DEATH(static_cast<void>(sequence->try_append(-1)), "CHECK failed");
  sequence->trim();
  EXPECT_DEATH(static_cast<void>(sequence->page_for_write(kWindowed, 3)), "CHECK failed");
}

}  // namespace
}  // namespace memdecay
