#include "eval/runs/label_noise.h"

#include "core/check.h"

namespace memdecay {

LabelNoise::LabelNoise(double share, std::uint64_t seed) : share_(share), random_(seed) {
  MEMDECAY_CHECK(share >= 0.0 && share <= 1.0);
}

void LabelNoise::relabel(std::span<RegionSpan> spans) {
  for (RegionSpan& span : spans) {
    ++seen_;
    // Two draws for every span, taken or not: more noise then relabels the same spans and others.
    const double draw = random_.unit();
    const std::size_t step = 1 + random_.below(kRegionCount - 1);
    if (draw >= share_) continue;
    ++relabelled_;
    span.region = kRegions[(region_index(span.region) + step) % kRegionCount];
    span.pinned = false;
    span.item = kNoItem;
  }
}

}  // namespace memdecay
