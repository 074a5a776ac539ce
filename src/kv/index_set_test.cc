#include "kv/index_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace memdecay {
namespace {

TEST(IndexSet, SizesOfStorage) {
  EXPECT_EQ(IndexSet::words_for(1), 1U);
  EXPECT_EQ(IndexSet::words_for(64), 1U);
  EXPECT_EQ(IndexSet::words_for(65), 2U + 1U);
  EXPECT_EQ(IndexSet::words_for(64 * 64), 64U + 1U);
  EXPECT_EQ(IndexSet::words_for(64 * 64 + 1), 65U + 2U + 1U);
}

TEST(IndexSet, FillsUpInOrderAtEveryAwkwardCapacity) {
  for (const std::int32_t capacity : {1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 262145}) {
    std::vector<std::uint64_t> storage(IndexSet::words_for(capacity));
    IndexSet set(storage.data(), capacity);
    for (std::int32_t i = 0; i < capacity; ++i) ASSERT_EQ(set.take_lowest(), i) << capacity;
    EXPECT_EQ(set.taken(), capacity);
    EXPECT_TRUE(set.consistent(capacity));
    set.give_back(capacity / 2);
    if (capacity > 2) set.give_back(capacity - 1);
    EXPECT_EQ(set.take_lowest(), capacity / 2);
  }
}

TEST(IndexSet, AgreesWithAnOrderedSet) {
  constexpr std::int32_t kCapacity = 5000;
  std::vector<std::uint64_t> storage(IndexSet::words_for(kCapacity));
  IndexSet set(storage.data(), kCapacity);
  std::set<std::int32_t> free;
  for (std::int32_t i = 0; i < kCapacity; ++i) free.insert(i);
  std::vector<std::int32_t> taken;
  std::mt19937 random(7);
  for (int step = 0; step < 40000; ++step) {
    const bool growing = step / 10000 % 2 == 0;  // full, empty, full, empty
    if (!free.empty() && (taken.empty() || random() % 10 < (growing ? 9U : 1U))) {
      ASSERT_EQ(set.take_lowest(), *free.begin());
      taken.push_back(*free.begin());
      free.erase(free.begin());
    } else {
      const std::size_t which = random() % taken.size();
      std::swap(taken[which], taken.back());
      ASSERT_TRUE(set.contains(taken.back()));
      set.give_back(taken.back());
      ASSERT_FALSE(set.contains(taken.back()));
      free.insert(taken.back());
      taken.pop_back();
    }
    if (step % 500 == 0) {
      ASSERT_TRUE(set.consistent(kCapacity));
    }
  }
}

TEST(IndexSetDeathTest, MisuseIsABug) {
  std::vector<std::uint64_t> storage(IndexSet::words_for(2));
  IndexSet set(storage.data(), 2);
  EXPECT_DEATH(set.give_back(0), "CHECK failed");
  EXPECT_DEATH(static_cast<void>(set.contains(2)), "CHECK failed");
  set.take_lowest();
  set.take_lowest();
  EXPECT_DEATH(static_cast<void>(set.take_lowest()), "CHECK failed");
}

}  // namespace
}  // namespace memdecay
