// Survival curves: how long what an agent reads stays in use (A5).
//
// A life that goes on where its run ends is censored there, not over. The curve is the
// product-limit estimate (Kaplan, Meier 1958). Steps are tokens. Pure, any thread. Cost: O(n log
// n).
#pragma once

#include <cstdint>
#include <vector>

namespace memdecay {

struct SurvivalPoint {
  double steps = 0;
  double share = 1;  ///< still in use after so many steps
};

struct SurvivalCurve {
  std::vector<SurvivalPoint> points;  ///< one for each life that ended, from (0, 1) on; falling
  std::int64_t items = 0;
  std::int64_t ended = 0;  ///< the others are censored
  /// The first step at which the share is at most this; infinite where the curve stays above.
  double steps_at(double share) const;
};

/// Lives of the same length.
struct LifeCount {
  std::int64_t steps = 0;
  std::int64_t ended = 0;
  std::int64_t censored = 0;  ///< went on where the run ended
};
/// In any order; lengths may stand there several times.
SurvivalCurve survival_curve(std::vector<LifeCount> lives);
}  // namespace memdecay
