#include "kv/kv_budget.h"
#include "kv/take_for_test.h"

#include <gtest/gtest.h>

#include <utility>

namespace memdecay {
namespace {

std::unique_ptr<KvBudget> make_budget(std::uint64_t limit) {
  return std::move(KvBudget::create(limit)).value();
}

TEST(KvBudget, RefusesZeroAndCountsWhenUnlimited) {
  EXPECT_EQ(KvBudget::create(0).status().code(), StatusCode::kInvalidArgument);
  const auto budget = make_budget(KvBudget::kUnlimited);
  auto most = budget->try_reserve(KvBudget::kUnlimited - 5);
  ASSERT_TRUE(most);
  EXPECT_EQ(budget->free_bytes(), 5U);
  EXPECT_FALSE(budget->try_reserve(6));  // no sum wraps around
  EXPECT_FALSE(budget->try_reserve(KvBudget::kUnlimited));
}

TEST(KvBudget, TheLimitIsExact) {
  const auto budget = make_budget(100);
  auto a = budget->try_reserve(60);
  ASSERT_TRUE(a);
  EXPECT_EQ(budget->missing_bytes(40), 0U);
  EXPECT_EQ(budget->missing_bytes(41), 1U);
  EXPECT_FALSE(budget->try_reserve(41));
  EXPECT_EQ(budget->current_bytes(), 60U);
  auto b = budget->try_reserve(40);
  ASSERT_TRUE(b);
  EXPECT_TRUE(budget->try_reserve(0));
  EXPECT_FALSE(budget->try_reserve(1));
  a.reset();
  EXPECT_EQ(budget->current_bytes(), 40U);
  EXPECT_EQ(budget->peak_bytes(), 100U);
  budget->reset_peak();
  EXPECT_EQ(budget->peak_bytes(), 40U);
}

TEST(KvBudget, ReservationsMoveSplitAndMerge) {
  const auto budget = make_budget(100);
  BudgetReservation whole = take_bytes(*budget, 50);
  BudgetReservation part = whole.split(20);
  EXPECT_EQ(whole.bytes(), 30U);
  EXPECT_EQ(part.bytes(), 20U);
  EXPECT_EQ(budget->current_bytes(), 50U);
  whole.merge(std::move(part));
  EXPECT_EQ(whole.bytes(), 50U);
  EXPECT_EQ(part.bytes(), 0U);  // NOLINT: a moved-from reservation is empty by contract
  BudgetReservation none;
  none.merge(BudgetReservation());
  none.merge(whole.split(10));
  EXPECT_EQ(none.bytes(), 10U);
  BudgetReservation other = take_bytes(*budget, 5);
  other = std::move(none);  // gives its own 5 back
  EXPECT_EQ(budget->current_bytes(), 50U);
  other.release();
  other.release();
  EXPECT_EQ(budget->current_bytes(), 40U);
}

TEST(KvBudgetDeathTest, MisuseIsABug) {
  const auto budget = make_budget(100);
  const auto elsewhere = make_budget(100);
  BudgetReservation a = take_bytes(*budget, 10);
  BudgetReservation b = take_bytes(*elsewhere, 10);
  EXPECT_DEATH(static_cast<void>(a.split(11)), "CHECK failed");
  EXPECT_DEATH(a.merge(std::move(b)), "CHECK failed");
  EXPECT_DEATH(
      {
        auto dying = make_budget(10);
        auto left = dying->try_reserve(1);
        dying.reset();
      },
      "current_bytes_ == 0");
}

}  // namespace
}  // namespace memdecay
