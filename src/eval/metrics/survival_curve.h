// Survival curves: how long what an agent reads stays in use, per region, and the decay factors
// that follow (A5).
//
// Records of a run without eviction say when an item (a page, a span) was born and last used. An
// item whose last use lies less than quiet_steps before the end of its run may be used again: its
// life is censored there, not over. The curve is the product-limit estimate (Kaplan, Meier 1958).
// Three shapes are fitted to ln S by least squares, and compared by AIC:
//   exponential    S = exp(-a t)
//   power law      S = (1 + t / b)^-a
//   two components S = w exp(-a t) + (1 - w) exp(-b t)
// The decay factor is that with which a region's score falls to the threshold when the curve has
// fallen to the wished share (policy/decay_math.h); the way back gives the share that a factor
// would still have in use. Steps are tokens. Pure, any thread. Cost: O(n log n); the fits
// of a region take a tenth of a second.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "policy/decay_math.h"
#include "policy/region.h"

namespace memdecay {

struct UseRecord {
  Region region = Region::kOrdinary;
  std::int64_t born = 0;
  std::int64_t last_use = 0;  ///< >= born
  std::int64_t run_end = 0;   ///< >= last_use
};

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
/// REQUIRES: born <= last_use <= run_end, quiet_steps >= 0.
SurvivalCurve survival_curve(std::span<const UseRecord> records, Region region,
                             std::int64_t quiet_steps);

enum class SurvivalShape : std::uint8_t { kExponential, kPowerLaw, kTwoComponents };
inline constexpr std::size_t kSurvivalShapeCount = 3;
const char* survival_shape_name(SurvivalShape shape);

struct SurvivalFit {
  SurvivalShape shape = SurvivalShape::kExponential;
  double a = 0, b = 0, w = 0;  ///< as above; unused ones 0
  double error = 0;            ///< mean squared error of ln S
  double aic = 0;              ///< lower is better
  double share_at(double steps) const;
  double steps_at(double share) const;  ///< REQUIRES: 0 < share < 1
};

/// All three, best first. Empty for a curve with fewer than four points above zero.
std::vector<SurvivalFit> fit_survival(const SurvivalCurve& curve);

struct CalibrationOptions {
  double wished_share = 0.1;  ///< a score reaches the threshold when so few are in use still
  double threshold = kDecayThreshold;
  std::int64_t quiet_steps = 1024;
};

struct RegionCalibration {
  Region region = Region::kOrdinary;
  SurvivalCurve curve;
  std::vector<SurvivalFit> fits;
  double survival_steps = 0;  ///< infinite: does not decay
  double decay = 0;
};

/// [regions]. The system region never decays; one without lives that ended keeps the decay 0.
std::array<RegionCalibration, kRegionCount> calibrate_decay(std::span<const UseRecord> records,
                                                            const CalibrationOptions& options = {});

/// The share of a region's items still in use when its score has fallen to the threshold under
/// another decay factor: the way back.
double share_in_use(const RegionCalibration& region, double decay, double threshold);

/// The config that `memdecay calibrate decay` writes (docs/formats/policy_config.md).
nlohmann::ordered_json calibration_json(const std::array<RegionCalibration, kRegionCount>& regions,
                                        const CalibrationOptions& options);
/// Curves and best fits as one <svg>.
std::string calibration_svg(const std::array<RegionCalibration, kRegionCount>& regions);

}  // namespace memdecay
