#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/units.h"
#include "kv/take_for_test.h"
#include "sys/memory_denied_for_test.h"

namespace memdecay {
namespace {

// 3 layers x 2 heads x (K, V) x 20 x 16 x 2 bytes = 7680 bytes: a stride of two system pages.
constexpr KvPageLayout kLayout{
    .layers = 3, .kv_heads = 2, .head_dim = 20, .page_tokens = 16, .format = KvFormat::kF16};

class PagePoolTest : public testing::Test {
 protected:
  std::unique_ptr<PagePool> make_pool(std::int32_t max_pages) {
    return std::move(PagePool::create(*budget_, kLayout, max_pages)).value();
  }
  std::unique_ptr<KvBudget> budget_ = std::move(KvBudget::create(kMiB)).value();
};

TEST_F(PagePoolTest, ChargesTablesThenStrides) {
  const auto pool = make_pool(10);
  EXPECT_EQ(pool->stride_bytes(), 8192U);
  const std::uint64_t tables = budget_->current_bytes();
  EXPECT_EQ(tables, PagePool::table_bytes_for(10));
  auto a = take_page(*pool);
  const auto b = take_page(*pool);
  EXPECT_EQ(budget_->current_bytes(), tables + 2 * 8192);
  auto c = a.share();  // references cost nothing
  EXPECT_EQ(budget_->current_bytes(), tables + 2 * 8192);
  a.reset();
  EXPECT_EQ(budget_->current_bytes(), tables + 2 * 8192);
  c.reset();
  EXPECT_EQ(budget_->current_bytes(), tables + 8192);
}

TEST_F(PagePoolTest, PagesAreZeroEachTimeTheyAreHandedOut) {
  const auto pool = make_pool(3);
  for (int round = 0; round < 3; ++round) {
    std::vector<PageHandle> pages;
    for (int i = 0; i < 3; ++i) {
      auto page = take_page(*pool);
      const auto* const bytes = page.base();
      for (std::size_t b = 0; b < pool->stride_bytes(); ++b) ASSERT_EQ(bytes[b], std::byte{0});
      std::memset(page.base(), 0xFF, pool->stride_bytes());
      pages.push_back(std::move(page));
    }
    EXPECT_FALSE(pool->try_allocate());
  }
}

TEST_F(PagePoolTest, ReferencesAndCounters) {
  const auto pool = make_pool(4);
  auto a = take_page(*pool);
  EXPECT_TRUE(a.exclusive());
  EXPECT_EQ(pool->counters().shared_pages, 0);
  {
    auto b = a.share();
    auto c = b.share();
    EXPECT_EQ(a.references(), 3);
    EXPECT_FALSE(c.exclusive());
    EXPECT_EQ(pool->counters().shared_pages, 1);
    PageHandle moved(std::move(b));
    EXPECT_EQ(a.references(), 3);
    EXPECT_FALSE(b.has_page());  // NOLINT: a moved-from handle is empty by contract
    c = std::move(moved);        // one reference less
    EXPECT_EQ(a.references(), 2);
  }
  EXPECT_TRUE(a.exclusive());
  const PagePoolCounters counters = pool->counters();
  EXPECT_EQ(counters.total_pages, 4);
  EXPECT_EQ(counters.used_pages, 1);
  EXPECT_EQ(counters.free_pages, 3);
  EXPECT_EQ(counters.shared_pages, 0);
  EXPECT_EQ(counters.allocations, 1U);
  EXPECT_EQ(counters.releases, 0U);
  EXPECT_TRUE(pool->check(std::vector<std::int32_t>{1}).ok());
}

TEST_F(PagePoolTest, RememberedPagesThatNobodyElseHoldsAreIdle) {
  const auto pool = make_pool(4);
  auto kept = take_page(*pool);
  const auto other = take_page(*pool);
  EXPECT_FALSE(kept.remembered());
  pool->set_remembered(kept, true);
  EXPECT_TRUE(kept.remembered());
  EXPECT_EQ(kept.references(), 1);
  EXPECT_FALSE(other.remembered());
  EXPECT_EQ(pool->idle_pages(), 1);
  {
    const auto first = kept.share();
    EXPECT_EQ(pool->idle_pages(), 0);
    const auto second = kept.share();
    EXPECT_EQ(kept.references(), 3);
    const std::vector<std::int32_t> references = {3, 1};
    EXPECT_TRUE(pool->check(references).ok()) << pool->check(references).message();
  }
  EXPECT_EQ(pool->idle_pages(), 1);
  EXPECT_TRUE(pool->check(std::vector<std::int32_t>{1, 1}).ok());
  EXPECT_DEATH(pool->set_remembered(kept, true), "remembered");
  EXPECT_DEATH(kept.reset(), "remembered");
  auto user = kept.share();
  pool->set_remembered(kept, false);
  EXPECT_EQ(pool->idle_pages(), 0);
  pool->set_remembered(user, true);  // either reference may be the keeper's
  kept.reset();
  EXPECT_EQ(pool->idle_pages(), 1);
  pool->set_remembered(user, false);
  EXPECT_EQ(pool->idle_pages(), 0);
}

TEST_F(PagePoolTest, TheLowestFreePageComesFirst) {
  const auto pool = make_pool(100);
  std::vector<PageHandle> pages;
  for (int i = 0; i < 80; ++i) {
    pages.push_back(take_page(*pool));
    EXPECT_EQ(pages.back().id(), PageId(i));
  }
  pages[70].reset();
  pages[5].reset();
  EXPECT_EQ(take_page(*pool).id(), PageId(5));
}

TEST_F(PagePoolTest, NoRoomIsAnAnswerAndChangesNothing) {
  const auto pool = make_pool(200);
  std::vector<PageHandle> pages;
  while (auto page = pool->try_allocate()) pages.push_back(*std::move(page));
  EXPECT_EQ(pages.size(), (kMiB - PagePool::table_bytes_for(200)) / 8192);
  EXPECT_LE(budget_->peak_bytes(), kMiB);
  EXPECT_EQ(pool->counters().used_pages, static_cast<std::int32_t>(pages.size()));
  EXPECT_TRUE(pool->check(std::vector<std::int32_t>(pages.size(), 1)).ok());
  pages.pop_back();
  EXPECT_TRUE(pool->try_allocate());
}

TEST_F(PagePoolTest, CopyIsPrivateAndComplete) {
  const auto pool = make_pool(4);
  auto source = take_page(*pool);
  std::memset(source.base(), 0x5A, kLayout.page_bytes());
  auto paid = take_bytes(*budget_, pool->stride_bytes());
  ASSERT_TRUE(pool->try_prepare(1));
  const auto copy = pool->copy(source, paid);
  EXPECT_EQ(paid.bytes(), 0U);
  EXPECT_NE(copy.base(), source.base());
  EXPECT_EQ(std::memcmp(copy.base(), source.base(), kLayout.page_bytes()), 0);
  EXPECT_EQ(pool->counters().copies, 1U);
}

TEST_F(PagePoolTest, ABudgetWithoutRoomForTheTablesRefusesThePool) {
  const auto rest = budget_->try_reserve(kMiB - 1);
  const auto pool = PagePool::create(*budget_, kLayout, 10);
  EXPECT_EQ(pool.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(budget_->current_bytes(), kMiB - 1);
}

TEST_F(PagePoolTest, AnAddressSpaceThatDoesNotExistRefusesThePoolAndGivesTheBudgetBack) {
  KvPageLayout vast = kLayout;
  vast.layers = 1 << 20;
  vast.head_dim = 1 << 20;
  const auto pool = PagePool::create(*budget_, vast, 1000);
  EXPECT_EQ(pool.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(budget_->current_bytes(), 0U);
}

TEST_F(PagePoolTest, ASystemWithoutMemoryIsNoRoom) {
  if (!MemoryDenied::kPossible) GTEST_SKIP() << "a sanitizer needs memory";
  const auto pool = make_pool(100);
  const std::uint64_t bytes = budget_->current_bytes();
  std::optional<MemoryDenied> denied(std::in_place);
  const auto page = pool->try_allocate();
  const Room room = pool->try_prepare(3);
  denied.reset();
  EXPECT_FALSE(page);
  EXPECT_EQ(room.refusal, Room::Refusal::kSystem);
  EXPECT_EQ(room.missing_bytes, 3 * pool->stride_bytes());
  EXPECT_EQ(budget_->current_bytes(), bytes);
  EXPECT_TRUE(pool->check({}).ok());
  EXPECT_TRUE(pool->try_allocate());
}

TEST_F(PagePoolTest, CheckNamesABrokenCount) {
  const auto pool = make_pool(4);
  const auto page = pool->try_allocate();
  EXPECT_TRUE(pool->check(std::vector<std::int32_t>{1}).ok());
  for (const std::int32_t wrong : {0, 2})
    EXPECT_NE(pool->check(std::vector<std::int32_t>{wrong}).message().find("page 0"),
              std::string::npos);
}

TEST_F(PagePoolTest, HandlesDieBeforeTheirPool) {
  EXPECT_DEATH(
      {
        auto pool = make_pool(4);
        auto page = pool->try_allocate();
        pool.reset();
      },
      "CHECK failed");
  EXPECT_DEATH(static_cast<void>(PageHandle().base()), "has_page");
}

}  // namespace
}  // namespace memdecay
