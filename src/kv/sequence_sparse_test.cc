// Cuts, tombstones, forms, packing and adoption, with exact expectations; ReferenceCache meets the
// rest at random.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/units.h"
#include "kv/kv_cache.h"
#include "kv/slot_pattern.h"
#include "kv/take_for_test.h"
#include "quant/half.h"
#include "quant/kv_page_codec.h"

namespace memdecay {
namespace {

using testing::ElementsAre;
using Cuts = std::vector<Position>;

constexpr LayerGroupId kGlobal(0);
constexpr LayerGroupId kWindowed(1);
// 2 layers x 2 heads x (K, V) x 32 x 16 x 2 bytes: two system pages as fp16, one or less below.
constexpr KvPageLayout kLayout{
    .layers = 2, .kv_heads = 2, .head_dim = 32, .page_tokens = 16, .format = KvFormat::kF16};

std::unique_ptr<KvCache> make_cache(std::uint64_t budget = KvBudget::kUnlimited,
                                    std::vector<std::int32_t> windows = {0}) {
  KvCacheConfig config;
  for (const std::int32_t window : windows) config.groups.push_back({kLayout, window});
  config.forms = {KvFormat::kInt8, KvFormat::kF16, KvFormat::kInt4, KvFormat::kInt8};
  config.budget_bytes = budget;
  auto cache = KvCache::create(config);
  EXPECT_TRUE(cache.ok()) << cache.status().message();
  return std::move(cache).value();
}

/// (first position, filled) of every page.
using Entries = std::vector<std::pair<Position, std::int32_t>>;
Entries entries(const Sequence& sequence, LayerGroupId group = kGlobal) {
  Entries found;
  for (const KvPageRef& page : sequence.view(group).pages)
    found.emplace_back(page.first_position, page.filled);
  return found;
}

void expect_valid(const KvCache& cache, std::uint64_t other_bytes = 0) {
  const Status status = cache.validate(other_bytes);
  EXPECT_TRUE(status.ok()) << status.message();
}

void append(Sequence& sequence, std::int32_t tokens, const Cuts& cuts = {}) {
  const Position begin = sequence.size();
  ASSERT_TRUE(sequence.try_append(tokens, cuts));
  for (Position p = begin; p < begin + tokens; ++p) {
    const KvPageRef page = sequence.page_for_write(kGlobal, p);
    SlotPattern(kLayout, page, p - page.first_position).write(static_cast<std::uint64_t>(p));
  }
}

/// Positions that the slots of the page at `first_position` hold, as their values say.
bool holds(const Sequence& sequence, std::size_t index, const std::vector<Position>& positions) {
  const KvPageRef page = sequence.view(kGlobal).pages[index];
  if (page.filled != static_cast<std::int32_t>(positions.size())) return false;
  for (std::int32_t slot = 0; slot < page.filled; ++slot) {
    const auto marker = static_cast<std::uint64_t>(positions[static_cast<std::size_t>(slot)]);
    if (!SlotPattern(kLayout, page, slot).holds(marker)) return false;
  }
  return true;
}

void zero_copy(const KvPageLayout&, const std::byte*, const KvPageLayout&, std::byte*,
               std::int32_t) {}

TEST(SequenceCuts, APageBeginsAtEachCut) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 10);
  append(*sequence, 30, {12, 15});  // 2 more in the open page, 3 between the cuts, 25 behind
  EXPECT_EQ(entries(*sequence), (Entries{{0, 12}, {12, 3}, {15, 16}, {31, 9}}));
  append(*sequence, 3);
  append(*sequence, 4, {43});  // a cut at the size seals the last page
  EXPECT_EQ(entries(*sequence), (Entries{{0, 12}, {12, 3}, {15, 16}, {31, 12}, {43, 4}}));
  EXPECT_EQ(sequence->view(kGlobal).first_page_number, 0);
  expect_valid(*cache);
}

TEST(SequenceCuts, ACutAtAFullPagesEndChangesNothing) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 40, {16, 32});
  append(*sequence, 40, {40, 41, 79});
  EXPECT_EQ(entries(*sequence),
            (Entries{{0, 16}, {16, 16}, {32, 8}, {40, 1}, {41, 16}, {57, 16}, {73, 6}, {79, 1}}));
}

TEST(SequenceCuts, WindowsIgnoreThem) {
  const auto cache = make_cache(KvBudget::kUnlimited, {0, 20});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(40, Cuts{3, 20}));
  EXPECT_EQ(entries(*sequence), (Entries{{0, 3}, {3, 16}, {19, 1}, {20, 16}, {36, 4}}));
  EXPECT_EQ(entries(*sequence, kWindowed), (Entries{{0, 16}, {16, 16}, {32, 8}}));
  sequence->drop(Cuts{3, 19});
  EXPECT_EQ(entries(*sequence, kWindowed).size(), 3U);
  ASSERT_TRUE(sequence->try_append(1, Cuts{40}));
  EXPECT_EQ(entries(*sequence, kWindowed), (Entries{{16, 16}, {32, 9}}));
  EXPECT_EQ(sequence->view(kWindowed).first_page_number, 1);
  expect_valid(*cache);
}

TEST(SequenceCuts, ASharedPageThatACutSealsIsNotCopied) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 10);
  const auto fork = sequence->try_fork();
  EXPECT_TRUE(fork->is_open());
  append(*sequence, 1, {10});
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 0U);
  ASSERT_TRUE(fork->try_append(1));
  EXPECT_EQ(entries(*fork), (Entries{{0, 11}}));
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 1U);
}

TEST(SequenceDrop, FreesBytesAtOnceAndKeepsPositions) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 100, {20});
  ASSERT_EQ(entries(*sequence),
            (Entries{{0, 16}, {16, 4}, {20, 16}, {36, 16}, {52, 16}, {68, 16}, {84, 16}}));
  const std::uint64_t bytes = cache->budget().current_bytes();
  sequence->drop(Cuts{16, 36, 52});
  EXPECT_EQ(cache->budget().current_bytes(), bytes - 3 * 8192);
  EXPECT_EQ(sequence->size(), 100);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {20, 16}, {68, 16}, {84, 16}}));
  EXPECT_EQ(sequence->table(kGlobal).find(35), 1U);
  EXPECT_FALSE(sequence->table(kGlobal).find(36));
  EXPECT_FALSE(sequence->table(kGlobal).find(67));
  EXPECT_EQ(sequence->table(kGlobal).find(68), 2U);
  sequence->drop(Cuts{84});  // full, so it is sealed although it is the last
  append(*sequence, 1);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {20, 16}, {68, 16}, {100, 1}}));
  expect_valid(*cache);
}

TEST(SequenceDrop, SharedPagesStayWithOthers) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 64);
  auto fork = sequence->try_fork();
  const std::uint64_t bytes = cache->budget().current_bytes();
  sequence->drop(Cuts{0, 32});
  EXPECT_EQ(cache->budget().current_bytes(), bytes);
  EXPECT_EQ(fork->memory().exclusive_pages, 2);
  auto sparse = sequence->try_fork();  // gaps included
  EXPECT_EQ(entries(*sparse), (Entries{{16, 16}, {48, 16}}));
  EXPECT_EQ(sparse->size(), 64);
  fork.reset();
  EXPECT_EQ(cache->pool(kGlobal).counters().used_pages, 2);
  expect_valid(*cache);
}

TEST(SequenceDropDeathTest, TheOpenPageAndWhatIsNotThereAreBugs) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 40);
  EXPECT_DEATH(sequence->drop(Cuts{32}), "open_");
  EXPECT_DEATH(sequence->drop(Cuts{1}), "CHECK failed");
  EXPECT_DEATH(sequence->drop(Cuts{16, 0}), "CHECK failed");
  sequence->drop(Cuts{0});
  EXPECT_DEATH(sequence->drop(Cuts{0}), "CHECK failed");
  EXPECT_DEATH(sequence->check_writable(0, 1), "CHECK failed");
}

TEST(SequenceTruncate, IntoAndBehindGaps) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 90, {20});  // 0..16, 16..20, 20..36, 36..52, 52..68, 68..84, 84..90
  sequence->drop(Cuts{36, 52});
  ASSERT_TRUE(sequence->try_truncate(75));  // through a page: it is open
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 4}, {20, 16}, {68, 7}}));
  EXPECT_TRUE(sequence->is_open());
  append(*sequence, 1);
  EXPECT_EQ(entries(*sequence).back(), (std::pair<Position, std::int32_t>(68, 8)));
  ASSERT_TRUE(sequence->try_truncate(68));  // behind the gap
  EXPECT_FALSE(sequence->is_open());
  ASSERT_TRUE(sequence->try_truncate(40));  // in it
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 4}, {20, 16}}));
  append(*sequence, 2);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 4}, {20, 16}, {40, 2}}));
  ASSERT_TRUE(sequence->try_truncate(20));  // at a sealed page's end
  append(*sequence, 1);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 4}, {20, 1}}));
  ASSERT_TRUE(sequence->try_truncate(19));
  append(*sequence, 2);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 5}}));
  expect_valid(*cache);
}

TEST(SequenceReplace, EveryUnboundedGroupIsConvertedAndTheNewPageComesFirst) {
  const auto cache = make_cache(KvBudget::kUnlimited, {0, 20, 0});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(40));
  std::vector<std::pair<const std::byte*, std::int32_t>> seen;
  const std::uint64_t int8 = PagePool::stride_bytes_for(kLayout.in(KvFormat::kInt8));
  ASSERT_LT(int8, 8192U + 4096U);
  const std::byte* const before = sequence->view(kGlobal).pages[1].base;
  const std::uint64_t bytes = cache->budget().current_bytes();
  cache->budget().reset_peak();
  const auto convert = [&](const KvPageLayout& from, const std::byte* source,
                           const KvPageLayout& to, std::byte* target, std::int32_t filled) {
    EXPECT_EQ(from, kLayout);
    EXPECT_EQ(to, kLayout.in(KvFormat::kInt8));
    EXPECT_EQ(target[0], std::byte{0});
    target[0] = std::byte{7};
    seen.emplace_back(source, filled);
  };
  ASSERT_TRUE(sequence->try_replace(16, KvFormat::kInt8, convert));
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0], std::pair(before, 16));
  const KvPageRef page = sequence->view(kGlobal).pages[1];
  EXPECT_EQ(page.format, KvFormat::kInt8);
  EXPECT_EQ(page.base[0], std::byte{7});
  EXPECT_EQ(cache->budget().peak_bytes(), bytes + 2 * int8);
  EXPECT_EQ(cache->budget().current_bytes(), bytes + 2 * int8 - 2 * 8192);
  EXPECT_EQ(cache->pools(kGlobal).find(KvFormat::kInt8)->counters().used_pages, 1);
  EXPECT_EQ(cache->pools(kWindowed).find(KvFormat::kInt8), nullptr);
  expect_valid(*cache);
}

TEST(SequenceReplace, ALastPageInAnotherFormIsNeverWrittenAgain) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 10);
  ASSERT_TRUE(sequence->try_replace(0, KvFormat::kInt4, zero_copy));
  EXPECT_FALSE(sequence->is_open());
  append(*sequence, 2);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 10}, {10, 2}}));
  ASSERT_TRUE(sequence->try_truncate(7));
  append(*sequence, 1);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 7}, {7, 1}}));
  // Back in its own form it stays sealed, until it is cut through.
  ASSERT_TRUE(sequence->try_truncate(7));
  ASSERT_TRUE(sequence->try_replace(0, KvFormat::kF16, zero_copy));
  EXPECT_FALSE(sequence->is_open());
  ASSERT_TRUE(sequence->try_truncate(6));
  EXPECT_TRUE(sequence->is_open());
  expect_valid(*cache);
}

TEST(SequenceReplace, OthersKeepTheOldPage) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 16);
  const auto fork = sequence->try_fork();
  ASSERT_TRUE(sequence->try_replace(0, KvFormat::kInt8, zero_copy));
  EXPECT_EQ(fork->view(kGlobal).pages[0].format, KvFormat::kF16);
  std::vector<Position> all(16);
  for (Position p = 0; p < 16; ++p) all[static_cast<std::size_t>(p)] = p;
  EXPECT_TRUE(holds(*fork, 0, all));
  EXPECT_EQ(fork->memory().exclusive_pages, 1);
  expect_valid(*cache);
}

TEST(SequencePack, SlotsMoveAndRunsAreKnown) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 16 + 3 + 2 + 4 + 6, {16, 19, 21, 25});
  sequence->drop(Cuts{19});
  ASSERT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 3}, {21, 4}, {25, 6}}));
  append(*sequence, 1, {31});
  const std::uint64_t bytes = cache->budget().current_bytes();
  const std::uint64_t tables = sequence->memory().table_bytes;
  ASSERT_TRUE(sequence->pack_pages(Cuts{16, 21, 25}));
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 13}, {31, 1}}));
  EXPECT_TRUE(holds(*sequence, 1, {16, 17, 18, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}));
  const PackedRuns& runs = sequence->table(kGlobal).runs();
  EXPECT_THAT(runs.of(sequence->view(kGlobal).pages[1]),
              ElementsAre(PositionRun{16, 3}, PositionRun{21, 10}));
  EXPECT_TRUE(runs.of(sequence->view(kGlobal).pages[0]).empty());
  EXPECT_FALSE(sequence->table(kGlobal).find(20));
  EXPECT_EQ(sequence->table(kGlobal).find(21), 1U);
  EXPECT_EQ(sequence->table(kGlobal).find(30), 1U);
  // 3 pages became 1; the array of runs, 8 of 8 bytes, is charged.
  EXPECT_EQ(sequence->memory().table_bytes, tables + 64);
  EXPECT_EQ(cache->budget().current_bytes(), bytes - 2 * 8192 + 64);
  expect_valid(*cache);

  const auto fork = sequence->try_fork();
  EXPECT_EQ(fork->table(kGlobal).find(20), std::nullopt);
  EXPECT_EQ(fork->table(kGlobal).find(24), 1U);
  ASSERT_TRUE(sequence->try_truncate(23));  // into the second run: still packed
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 5}}));
  EXPECT_FALSE(sequence->is_open());
  ASSERT_TRUE(sequence->try_truncate(20));  // into the gap: plain, and at the page's end
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 3}}));
  EXPECT_FALSE(sequence->is_open());
  EXPECT_EQ(runs.count(), 0U);
  ASSERT_TRUE(sequence->try_truncate(18));
  append(*sequence, 2);  // goes on in a copy: the fork's page is not touched
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 4}}));
  expect_valid(*cache);
  EXPECT_TRUE(holds(*fork, 1, {16, 17, 18, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30}));
}

TEST(SequencePack, WithoutAGapThePageIsPlain) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 20, {5, 9, 19});
  ASSERT_EQ(entries(*sequence), (Entries{{0, 5}, {5, 4}, {9, 10}, {19, 1}}));
  ASSERT_TRUE(sequence->pack_pages(Cuts{0, 5}));
  EXPECT_EQ(entries(*sequence), (Entries{{0, 9}, {9, 10}, {19, 1}}));
  EXPECT_EQ(sequence->table(kGlobal).runs().count(), 0U);
  EXPECT_TRUE(holds(*sequence, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  expect_valid(*cache);
}

TEST(SequencePack, ManyPagesBecomeFewerFullOnes) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 40, {10, 14, 22, 30});
  sequence->drop(Cuts{10});
  ASSERT_EQ(entries(*sequence), (Entries{{0, 10}, {14, 8}, {22, 8}, {30, 10}}));
  ASSERT_TRUE(sequence->pack_pages(Cuts{0, 14, 22}));
  ASSERT_EQ(entries(*sequence), (Entries{{0, 16}, {20, 10}, {30, 10}}));
  EXPECT_TRUE(holds(*sequence, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 15, 16, 17, 18, 19}));
  EXPECT_TRUE(holds(*sequence, 1, {20, 21, 22, 23, 24, 25, 26, 27, 28, 29}));
  EXPECT_EQ(sequence->table(kGlobal).runs().count(), 2U);  // the second page is plain
  EXPECT_TRUE(sequence->is_open());
  expect_valid(*cache);
}

TEST(SequencePack, PackedPagesPackAgain) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 30, {2, 4, 6, 8, 10, 12, 29});
  sequence->drop(Cuts{2, 6, 10});
  ASSERT_TRUE(sequence->pack_pages(Cuts{0, 4}));
  ASSERT_TRUE(sequence->pack_pages(Cuts{0, 8}));
  ASSERT_EQ(entries(*sequence), (Entries{{0, 6}, {12, 16}, {28, 1}, {29, 1}}));
  EXPECT_TRUE(holds(*sequence, 0, {0, 1, 4, 5, 8, 9}));
  ASSERT_TRUE(sequence->pack_pages(Cuts{0, 12, 28}));  // 23 slots: 16 and 7
  ASSERT_EQ(entries(*sequence), (Entries{{0, 16}, {22, 7}, {29, 1}}));
  EXPECT_TRUE(holds(*sequence, 0, {0, 1, 4, 5, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21}));
  EXPECT_THAT(
      sequence->table(kGlobal).runs().of(sequence->view(kGlobal).pages[0]),
      ElementsAre(PositionRun{0, 2}, PositionRun{4, 2}, PositionRun{8, 2}, PositionRun{12, 10}));
  sequence->drop(Cuts{0});
  EXPECT_EQ(sequence->table(kGlobal).runs().count(), 0U);
  expect_valid(*cache);
}

TEST(SequencePack, UtilisationRises) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 48, {4, 8, 12, 16, 32});  // 4 x 4, 16, 16
  EXPECT_DOUBLE_EQ(cache->usage().utilisation(), 48.0 / 96);
  ASSERT_TRUE(sequence->pack_pages(Cuts{0, 4, 8, 12}));
  EXPECT_DOUBLE_EQ(cache->usage().utilisation(), 1.0);
  ASSERT_TRUE(sequence->try_replace(16, KvFormat::kInt8, zero_copy));
  EXPECT_DOUBLE_EQ(cache->usage().utilisation(), 1.0);
  EXPECT_DOUBLE_EQ(cache->usage().allocated_slots, 48);
  EXPECT_DOUBLE_EQ(cache->usage().allocated_bytes,
                   2 * 8192.0 + static_cast<double>(kLayout.in(KvFormat::kInt8).page_bytes()));
}

TEST(SequencePackDeathTest, WhatMayNotBePackedIsABug) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 16 + 4 + 4 + 4 + 4, {16, 20, 24, 28});
  EXPECT_DEATH(static_cast<void>(sequence->pack_pages(Cuts{16})), "CHECK failed");
  EXPECT_DEATH(static_cast<void>(sequence->pack_pages(Cuts{0, 16})), "CHECK failed");  // 20 slots
  EXPECT_DEATH(static_cast<void>(sequence->pack_pages(Cuts{16, 24})),
               "CHECK failed");  // a page between
  EXPECT_DEATH(static_cast<void>(sequence->pack_pages(Cuts{24, 28})), "open_");
  ASSERT_TRUE(sequence->try_replace(20, KvFormat::kInt8, zero_copy));
  EXPECT_DEATH(static_cast<void>(sequence->pack_pages(Cuts{16, 20})), "CHECK failed");
  ASSERT_TRUE(sequence->try_replace(16, KvFormat::kInt8, zero_copy));
  EXPECT_DEATH(static_cast<void>(sequence->pack_pages(Cuts{16, 20})), "is_quantized");
}

TEST(SequenceSparse, EveryRefusalLeavesEverythingUnchanged) {
  const auto cache = make_cache(kMiB, {0, 0});
  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_append(40, Cuts{3, 6, 19, 35}));
  sequence->drop(Cuts{3});
  const Entries before = entries(*sequence);
  KvBudget& budget = cache->budget();
  const auto convert = [](const KvPageLayout&, const std::byte*, const KvPageLayout&, std::byte*,
                          std::int32_t) { FAIL(); };
  const std::uint64_t replace = 2 * PagePool::stride_bytes_for(kLayout.in(KvFormat::kInt4));
  for (std::uint64_t leave = 0; leave < replace; leave += 61) {
    auto ballast = take_bytes(budget, budget.free_bytes() - leave);
    const Room replaced = sequence->try_replace(6, KvFormat::kInt4, convert);
    ASSERT_EQ(replaced.refusal, Room::Refusal::kBudget);
    ASSERT_EQ(replaced.missing_bytes, replace - leave);
    ASSERT_EQ(sequence->pack_pages(Cuts{0, 6}).refusal, Room::Refusal::kBudget);
    ASSERT_EQ(entries(*sequence), before);
    expect_valid(*cache, ballast.bytes());
  }
  auto ballast = take_bytes(budget, budget.free_bytes() - replace);
  EXPECT_TRUE(sequence->try_replace(6, KvFormat::kInt4, zero_copy));
  EXPECT_EQ(budget.peak_bytes(), budget.limit_bytes());
}

TEST(SequenceAdopt, TakesSharedPagesFromTheFront) {
  const auto cache = make_cache(KvBudget::kUnlimited, {0, 0});
  std::vector<PageHandle> held;
  std::vector<const PageHandle*> others;
  {
    auto source = cache->try_create_sequence();
    append(*source, 30, {10, 12});
    for (const Position first : {0, 10, 12})
      for (const int group : {0, 1})
        held.push_back(share_page(*source, LayerGroupId(group), first));
  }
  for (const PageHandle& page : held) others.push_back(&page);
  EXPECT_EQ(cache->validate().code(), StatusCode::kCorrupt);
  EXPECT_TRUE(cache->validate(0, others).ok()) << cache->validate(0, others).message();

  auto sequence = cache->try_create_sequence();
  ASSERT_TRUE(sequence->try_adopt(std::vector<std::int32_t>{10, 2, 7}, held));
  EXPECT_EQ(sequence->size(), 19);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 10}, {10, 2}, {12, 7}}));
  EXPECT_TRUE(cache->validate(0, others).ok());
  EXPECT_EQ(sequence->memory().shared_pages, 6);
  ASSERT_TRUE(sequence->try_append(2));  // goes on in a copy of the last page
  EXPECT_EQ(entries(*sequence), (Entries{{0, 10}, {10, 2}, {12, 9}}));
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 1U);
  EXPECT_TRUE(holds(*sequence, 1, {10, 11}));
  auto sealed = cache->try_create_sequence();
  ASSERT_TRUE(sealed->try_adopt(std::vector<std::int32_t>{10}, std::span(held).first(2)));
  ASSERT_TRUE(sealed->try_append(1, Cuts{10}));
  EXPECT_EQ(cache->pool(kGlobal).counters().copies, 1U);
  held.clear();
  expect_valid(*cache);
}

TEST(SequenceAdopt, GoesOnBehindItsOwnPages) {
  const auto cache = make_cache(KvBudget::kUnlimited, {0});
  auto source = cache->try_create_sequence();
  append(*source, 40);
  std::vector<PageHandle> held;
  for (const Position first : {16, 32}) held.push_back(share_page(*source, kGlobal, first));
  auto sequence = cache->try_create_sequence();
  append(*sequence, 16);
  ASSERT_TRUE(sequence->try_adopt(std::vector<std::int32_t>{16, 5}, held));
  EXPECT_EQ(sequence->size(), 37);
  EXPECT_EQ(entries(*sequence), (Entries{{0, 16}, {16, 16}, {32, 5}}));
  EXPECT_EQ(sequence->memory().shared_pages, 2);
  EXPECT_TRUE(sequence->check().ok());
}

TEST(SequenceAdopt, AWindowTakesWhatTheNextQuerySees) {
  const auto cache = make_cache(KvBudget::kUnlimited, {0, 20});
  auto source = cache->try_create_sequence();
  append(*source, 72);
  const PageTable& window = source->table(kWindowed);
  ASSERT_EQ(window.first_page_number(), 0);  // it is trimmed before an append
  for (const std::size_t missing : {std::size_t{0}, std::size_t{2}}) {
    std::vector<PageHandle> held;
    for (std::size_t i = 0; i < 5; ++i) {
      const auto first = static_cast<Position>(16 * i);
      held.push_back(share_page(*source, kGlobal, first));
      held.push_back(i < missing ? PageHandle() : share_page(*source, kWindowed, first));
    }
    auto sequence = cache->try_create_sequence();
    ASSERT_TRUE(sequence->try_adopt(std::vector<std::int32_t>{16, 16, 16, 16, 3}, held));
    EXPECT_EQ(sequence->size(), 67);
    EXPECT_EQ(sequence->view(kWindowed).first_page_number, static_cast<int>(missing));
    EXPECT_TRUE(sequence->check().ok()) << sequence->check().message();
    ASSERT_TRUE(sequence->try_append(20));
    EXPECT_TRUE(sequence->check().ok()) << sequence->check().message();
  }
  std::vector<PageHandle> short_of_window;
  for (const Position first : {0, 16}) {
    short_of_window.push_back(share_page(*source, kGlobal, first));
    short_of_window.emplace_back();
  }
  auto sequence = cache->try_create_sequence();
  EXPECT_DEATH(
      static_cast<void>(sequence->try_adopt(std::vector<std::int32_t>{16, 16}, short_of_window)),
      "CHECK failed");
}

TEST(SequenceExactness, EndsAtTheFirstPageThatLostSomething) {
  const auto cache = make_cache();
  auto sequence = cache->try_create_sequence();
  append(*sequence, 60, {20, 40});
  EXPECT_EQ(sequence->exact_tokens(), 60);
  ASSERT_TRUE(sequence->try_replace(40, KvFormat::kInt8, zero_copy));
  EXPECT_EQ(sequence->exact_tokens(), 40);
  sequence->drop(Cuts{16});
  EXPECT_EQ(sequence->exact_tokens(), 16);
  append(*sequence, 10);
  EXPECT_EQ(sequence->exact_tokens(), 16);
  EXPECT_EQ(sequence->try_fork()->exact_tokens(), 16);
  ASSERT_TRUE(sequence->try_truncate(30));
  EXPECT_EQ(sequence->exact_tokens(), 16);
  ASSERT_TRUE(sequence->try_truncate(16));
  EXPECT_EQ(sequence->exact_tokens(), 16);
  append(*sequence, 30, {18, 20});
  EXPECT_EQ(sequence->exact_tokens(), 46);
  ASSERT_TRUE(sequence->pack_pages(Cuts{16, 18}));
  EXPECT_EQ(sequence->exact_tokens(), 16);
}

TEST(KvCacheForms, WhatCannotWorkIsRefusedInWords) {
  const auto cache = KvCache::create({.groups = {{kLayout.in(KvFormat::kInt8)}}});
  EXPECT_EQ(cache.status().code(), StatusCode::kInvalidArgument);
}

/// Real numbers in the heads of one page.
void fill_page(const KvPageLayout& layout, std::byte* page, float shift) {
  const std::size_t n =
      static_cast<std::size_t>(layout.head_dim) * static_cast<std::size_t>(layout.page_tokens);
  std::vector<float> keys(n), values(n);
  for (std::size_t i = 0; i < n; ++i) {
    keys[i] = std::sin(static_cast<float>(i) + shift);
    values[i] = std::cos(3 * static_cast<float>(i) + shift);
  }
  for (int layer = 0; layer < layout.layers; ++layer) {
    for (int head = 0; head < layout.kv_heads; ++head) {
      encode_kv_head(layout, keys.data(), values.data(), layout.page_tokens,
                     page + layout.head_offset(layer, head));
    }
  }
}

/// Root of the mean relative squared difference of a page from what fill_page() wrote.
float error_of(const KvPageLayout& layout, const KvPageRef& page, float shift) {
  std::vector<std::byte> want(layout.page_bytes()), got(layout.page_bytes());
  fill_page(layout, want.data(), shift);
  EXPECT_TRUE(convert_kv_page(layout.in(page.format), page.base, layout, got.data(), page.filled));
  double error = 0, power = 0;
  for (std::size_t i = 0; i < want.size(); i += 2) {
    std::uint16_t a = 0, b = 0;
    std::memcpy(&a, want.data() + i, 2);
    std::memcpy(&b, got.data() + i, 2);
    const double x = static_cast<double>(half_to_float(a));
    error += std::pow(x - static_cast<double>(half_to_float(b)), 2);
    power += x * x;
  }
  return static_cast<float>(std::sqrt(error / power));
}

TEST(KvCacheForms, HeadsOfAnySizeTakeEveryFormInEveryOperation) {
  const ConvertPage convert = [](const KvPageLayout& from, const std::byte* source,
                                 const KvPageLayout& to, std::byte* target, std::int32_t filled) {
    EXPECT_TRUE(convert_kv_page(from, source, to, target, filled));
  };
  for (const int head_dim : {1, 5, 33, 80, 255}) {
    SCOPED_TRACE(head_dim);
    const KvPageLayout layout{2, 2, head_dim, 16, KvFormat::kF16};
    auto cache = KvCache::create(
        {.groups = {{layout}}, .forms = {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4}});
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    auto sequence = (*cache)->try_create_sequence();
    ASSERT_TRUE(sequence->try_append(64));
    for (Position p = 0; p < 64; p += 16) {
      fill_page(layout, sequence->page_for_write(kGlobal, p).base, static_cast<float>(p));
    }
    for (const KvFormat form : {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4}) {
      const float limit = form == KvFormat::kInt8 ? 0.005F : 0.1F;
      ASSERT_TRUE(sequence->try_replace(16, form, convert));
      ASSERT_EQ(sequence->view(kGlobal).pages[1].format, form);
      EXPECT_LT(error_of(layout, sequence->view(kGlobal).pages[1], 16), limit);
    }
    ASSERT_TRUE(sequence->try_replace(48, KvFormat::kInt4, convert));
    auto fork = sequence->try_fork();
    ASSERT_TRUE(fork->try_truncate(55));  // through a page of codes: what is left stays as it was
    ASSERT_TRUE(fork->try_append(20));
    EXPECT_EQ(entries(*fork), (Entries{{0, 16}, {16, 16}, {32, 16}, {48, 7}, {55, 16}, {71, 4}}));
    ASSERT_TRUE(sequence->try_replace(16, KvFormat::kF16, convert));
    EXPECT_LT(error_of(layout, sequence->view(kGlobal).pages[1], 16), 0.1F);
    sequence->drop(Cuts{32});
    EXPECT_LT(error_of(layout, sequence->view(kGlobal).pages[2], 48), 0.1F);
    EXPECT_EQ(sequence->view(kGlobal).pages[2].format, KvFormat::kInt4);
    expect_valid(**cache);
  }
}

TEST(KvCacheForms, PoolsAreChargedFromTheStart) {
  const auto plain = std::move(KvCache::create({.groups = {{kLayout}}, .max_pages = 9})).value();
  const auto formed = std::move(KvCache::create({.groups = {{kLayout}},
                                                 .forms = {KvFormat::kInt8, KvFormat::kInt4},
                                                 .max_pages = 9}))
                          .value();
  EXPECT_EQ(formed->overhead_bytes(), 3 * plain->overhead_bytes());
  EXPECT_EQ(formed->budget().current_bytes(), formed->overhead_bytes());
  EXPECT_EQ(formed->pools(kGlobal).all().size(), 3U);
}

}  // namespace
}  // namespace memdecay
