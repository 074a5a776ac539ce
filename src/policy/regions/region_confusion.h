// RegionConfusion: how often which region was taken for which, and what follows from it.
//
// A plain value, filled token by token. A region that never occurs and is never named has no F1 and
// does not count in the mean; one that is named without occurring, or missed always, has 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "core/check.h"
#include "policy/region.h"

namespace memdecay {

class RegionConfusion {
 public:
  void add(Region truth, Region named) { ++counts_[region_index(truth)][region_index(named)]; }
  /// REQUIRES: equally many.
  void add(std::span<const Region> truth, std::span<const Region> named) {
    MEMDECAY_CHECK(truth.size() == named.size());
    for (std::size_t i = 0; i < truth.size(); ++i) add(truth[i], named[i]);
  }

  std::int64_t count(Region truth, Region named) const {
    return counts_[region_index(truth)][region_index(named)];
  }
  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const Region truth : kRegions) sum += occurrences(truth);
    return sum;
  }
  std::int64_t occurrences(Region truth) const {
    std::int64_t sum = 0;
    for (const Region named : kRegions) sum += count(truth, named);
    return sum;
  }
  /// Share of tokens that were named right; 0 for none.
  double accuracy() const {
    std::int64_t right = 0;
    for (const Region region : kRegions) right += count(region, region);
    return tokens() == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(tokens());
  }
  /// 2 right / (occurrences + times named).
  std::optional<double> f1(Region region) const {
    std::int64_t named = 0;
    for (const Region truth : kRegions) named += count(truth, region);
    const std::int64_t both = occurrences(region) + named;
    if (both == 0) return std::nullopt;
    return 2.0 * static_cast<double>(count(region, region)) / static_cast<double>(both);
  }
  /// Mean F1 of the regions that have one; 0 for none.
  double macro_f1() const {
    double sum = 0;
    int regions = 0;
    for (const Region region : kRegions) {
      const std::optional<double> own = f1(region);
      if (!own.has_value()) continue;
      sum += *own;
      ++regions;
    }
    return regions == 0 ? 0.0 : sum / regions;
  }

 private:
  std::array<std::array<std::int64_t, kRegionCount>, kRegionCount> counts_{};
};

}  // namespace memdecay
