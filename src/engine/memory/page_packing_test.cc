#include "engine/memory/page_packing.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace memdecay {
namespace {

constexpr std::int32_t kPageTokens = 32;

std::vector<PackablePage> pages_of(const std::vector<int>& fills) {
  std::vector<PackablePage> pages;
  for (const int fill : fills) pages.push_back({fill, true, Kinship::kAlike});
  return pages;
}

std::optional<PackingChoice> choose(const std::vector<PackablePage>& pages, std::size_t most = 16,
                                    Kinship least = Kinship::kAlike) {
  return choose_packing(pages, kPageTokens, most, least);
}

TEST(PagePacking, TakesTheFewestPagesThatFreeOne) {
  EXPECT_EQ(choose(pages_of({20, 32, 12, 22, 10, 32})), (PackingChoice{3, 2}));
  EXPECT_EQ(choose(pages_of({20, 32, 12, 32, 30, 32})), (PackingChoice{0, 3}));
  EXPECT_EQ(choose(pages_of({16, 16})), (PackingChoice{0, 2}));
}

TEST(PagePacking, ChoosesNothingWhereNothingIsFreed) {
  EXPECT_FALSE(choose({}).has_value());
  EXPECT_FALSE(choose(pages_of({7})).has_value());
  EXPECT_FALSE(choose(pages_of({32, 32, 32})).has_value());
  EXPECT_FALSE(choose(pages_of({17, 16, 32, 32})).has_value());
  EXPECT_FALSE(choose(pages_of({20, 32, 32, 12}), 3).has_value());
  EXPECT_EQ(choose(pages_of({20, 32, 32, 12}), 4), (PackingChoice{0, 4}));
}

TEST(PagePacking, KeepsToKinAndToWhatMayBeReplaced) {
  auto pages = pages_of({10, 10, 10});
  pages[1].kinship = Kinship::kNear;
  EXPECT_EQ(choose(pages), (PackingChoice{1, 2}));
  EXPECT_EQ(choose(pages, 16, Kinship::kNear), (PackingChoice{0, 2}));
  pages[1].packable = false;
  EXPECT_FALSE(choose(pages).has_value());
  pages = pages_of({10, 10});
  pages[0].kinship = Kinship::kNone;  // with what stands before the first: it does not count
  EXPECT_EQ(choose(pages), (PackingChoice{0, 2}));
  pages[1].kinship = Kinship::kNone;
  EXPECT_FALSE(choose(pages).has_value());
}

TEST(PagePacking, IsTheFirstBestOfAllRuns) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<PackablePage> pages;
    for (int i = 0; i < 12; ++i) {
      const bool full = random() % 2 == 0;
      pages.push_back({full ? kPageTokens : 1 + static_cast<int>(random() % kPageTokens),
                       random() % 8 != 0, static_cast<Kinship>(random() % 3)});
    }
    const std::size_t most = 2 + random() % 8;
    const auto least = random() % 2 == 0 ? Kinship::kNear : Kinship::kAlike;
    std::optional<PackingChoice> naive;
    for (std::size_t first = 0; first < pages.size(); ++first) {
      for (std::size_t count = 2; count <= most && first + count <= pages.size(); ++count) {
        int tokens = 0;
        bool fits = pages[first].filled < kPageTokens;
        for (std::size_t i = first; i < first + count; ++i) {
          tokens += pages[i].filled;
          fits = fits && pages[i].packable && (i == first || pages[i].kinship >= least);
        }
        fits = fits && (tokens + kPageTokens - 1) / kPageTokens < static_cast<int>(count);
        if (fits && (!naive.has_value() || count < naive->count)) naive = {first, count};
      }
    }
    EXPECT_EQ(choose(pages, most, least), naive);
  }
}

}  // namespace
}  // namespace memdecay
