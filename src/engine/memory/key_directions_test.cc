#include "engine/memory/key_directions.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "model/transformer/key_similarity.h"

namespace memdecay {
namespace {

constexpr KvPageLayout kLayout{2, 2, 16, 16, KvFormat::kF32};

/// Pages of random floats, by id.
class KeyDirectionsTest : public testing::Test {
 protected:
  KvPageRef make(int filled, std::uint32_t seed) {
    auto& slab =
        slabs_.emplace_back(std::make_unique<std::vector<std::byte>>(kLayout.page_bytes()));
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.2F);
    auto* floats = reinterpret_cast<float*>(slab->data());
    for (std::size_t i = 0; i < kLayout.page_bytes() / sizeof(float); ++i)
      floats[i] = normal(random);
    return {slab->data(), 0, filled, KvFormat::kF32};
  }
  void read(int id, const KvPageRef& page) {
    known_[id] = page;
    keys_.read(TrackedPageId(id), page,
               budget_->try_reserve(KeyDirections::page_bytes(kLayout)).value());
  }
  void forget(int id) {
    known_.erase(id);
    keys_.forget(TrackedPageId(id));
  }
  /// All that is known, judged at once by the plain functions.
  std::map<int, float> naive() const {
    std::vector<KvPageRef> pages;
    for (const auto& [id, page] : known_) pages.push_back(page);
    std::vector<float> similarities(pages.size());
    key_similarities({&kLayout, pages, 0}, similarities);
    std::map<int, float> by_id;
    for (const auto& [id, page] : known_) by_id[id] = similarities[by_id.size()];
    return by_id;
  }

  std::vector<std::unique_ptr<std::vector<std::byte>>> slabs_;
  std::unique_ptr<KvBudget> budget_ = KvBudget::create(1 << 20).value();
  std::map<int, KvPageRef> known_;
  KeyDirections keys_{kLayout};
};

TEST_F(KeyDirectionsTest, EqualsJudgingThePagesThatAreKnownWhateverCameAndWent) {
  std::mt19937 random(7);
  for (int step = 0; step < 60; ++step) {
    const int id = static_cast<int>(random() % 12);
    if (known_.contains(id)) {
      forget(id);
    } else {
      read(id, make(1 + static_cast<int>(random() % 16), static_cast<std::uint32_t>(step)));
    }
    ASSERT_EQ(keys_.held_bytes(), known_.size() * KeyDirections::page_bytes(kLayout));
    ASSERT_EQ(budget_->current_bytes(), keys_.held_bytes());
    const auto expected = naive();
    const auto judged = keys_.judge(100);
    ASSERT_EQ(judged.size(), expected.size());
    for (const PageEvidence& page : judged)
      ASSERT_NEAR(page.value, expected.at(page.page.value()), 1e-3) << "sums are kept as halves";
  }
}

TEST_F(KeyDirectionsTest, EveryPageHasItsTurn) {
  for (int id = 0; id < 10; ++id) read(id, make(16, static_cast<std::uint32_t>(id)));
  std::map<int, int> turns;
  for (int call = 0; call < 10; ++call) {
    const auto judged = keys_.judge(3);
    ASSERT_EQ(judged.size(), 3U);
    for (const PageEvidence& page : judged) ++turns[page.page.value()];
  }
  for (int id = 0; id < 10; ++id) EXPECT_EQ(turns[id], 3) << id;
}

TEST_F(KeyDirectionsTest, OneThatKnowsNothingSaysNothing) {
  EXPECT_TRUE(keys_.judge(8).empty());
  EXPECT_FALSE(keys_.knows(TrackedPageId(4)));
  keys_.forget(TrackedPageId(4));
  EXPECT_EQ(keys_.held_bytes(), 0U);
}

}  // namespace
}  // namespace memdecay
