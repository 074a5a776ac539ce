#include "eval/runs/label_noise.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace memdecay {
namespace {

std::vector<RegionSpan> spans(std::size_t count) {
  std::vector<RegionSpan> spans(count);
  for (std::size_t i = 0; i < count; ++i) {
    spans[i].region = kRegions[i % kRegionCount];
    spans[i].pinned = true;
    spans[i].item = 3;
    spans[i].message = static_cast<std::int32_t>(i);
  }
  return spans;
}

TEST(LabelNoise, NoneChangesNothingAndAllChangesEverything) {
  std::vector<RegionSpan> noisy = spans(1000);
  LabelNoise(0.0, 1).relabel(noisy);
  EXPECT_EQ(noisy, spans(1000));
  LabelNoise(1.0, 1).relabel(noisy);
  const std::vector<RegionSpan> clean = spans(1000);
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    EXPECT_NE(noisy[i].region, clean[i].region);
    EXPECT_FALSE(noisy[i].pinned);
    EXPECT_EQ(noisy[i].item, kNoItem);
    EXPECT_EQ(noisy[i].message, clean[i].message);
  }
}

TEST(LabelNoise, TheShareHoldsAndTheNewRegionsAreEven) {
  std::vector<RegionSpan> noisy = spans(100'000);
  LabelNoise noise(0.3, 7);
  noise.relabel(noisy);
  EXPECT_EQ(noise.seen(), 100'000);
  EXPECT_NEAR(static_cast<double>(noise.relabelled()), 30'000.0, 600.0);  // four sigma
  std::array<int, kRegionCount> to = {};
  for (std::size_t i = 0; i < noisy.size(); i += kRegionCount) {
    if (noisy[i].region != Region::kSystem) ++to[region_index(noisy[i].region)];
  }
  for (std::size_t region = 1; region < kRegionCount; ++region)
    EXPECT_NEAR(to[region], 1500, 160) << region;
}

TEST(LabelNoise, PiecesOfAStreamAreTheStreamAndMoreNoiseKeepsTheOldErrors) {
  std::vector<RegionSpan> whole = spans(500), pieces = spans(500), more = spans(500);
  LabelNoise(0.1, 9).relabel(whole);
  LabelNoise noise(0.1, 9);
  noise.relabel(std::span(pieces).first(123));
  noise.relabel(std::span(pieces).subspan(123));
  EXPECT_EQ(whole, pieces);
  LabelNoise(0.3, 9).relabel(more);
  const std::vector<RegionSpan> clean = spans(500);
  for (std::size_t i = 0; i < 500; ++i) {
    if (whole[i].region == clean[i].region) continue;
    EXPECT_EQ(more[i].region, whole[i].region);
  }
}

}  // namespace
}  // namespace memdecay
