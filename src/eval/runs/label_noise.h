// Label noise: what if the region rules were wrong? A share of the region spans, drawn at random,
// gets another region, so that a policy's dependence on its labels can be measured.
//
// It follows one conversation, as RegionRules does: spans in, in order. Each span is drawn on its
// own, so the share holds on average. A relabelled span loses its pin and its item: a classifier
// that was wrong would not have set them. Same seed, same spans: the same noise. One owner.
#pragma once

#include <cstdint>
#include <span>

#include "core/seeded_random.h"
#include "policy/regions/region_rules.h"

namespace memdecay {

class LabelNoise {
 public:
  /// REQUIRES: 0 <= share <= 1.
  LabelNoise(double share, std::uint64_t seed);

  void relabel(std::span<RegionSpan> spans);
  std::int64_t seen() const { return seen_; }
  std::int64_t relabelled() const { return relabelled_; }

 private:
  double share_;
  SeededRandom random_;
  std::int64_t seen_ = 0;
  std::int64_t relabelled_ = 0;
};

}  // namespace memdecay
