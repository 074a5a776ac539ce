// Decay calibration: the decay factors that follow from how long each region stays in use (A5).
//
// An item whose last use lies less than quiet_steps before the end of its run may be used again:
// its life is censored there, not over. The decay factor is that with which a region's score falls
// to the threshold when the curve has fallen to the wished share (policy/decay_math.h); the way
// back gives the share that a factor would still have in use. Steps are tokens. Pure, any thread.
// Cost: O(n log n), and the fits of survival_fit.h once a region.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "eval/calibration/use_record.h"
#include "eval/metrics/survival_fit.h"
#include "policy/decay_math.h"

namespace memdecay {

/// The lives of a region's items. REQUIRES: born <= last_use <= run_end, quiet_steps >= 0.
SurvivalCurve survival_curve(std::span<const UseRecord> records, Region region,
                             std::int64_t quiet_steps);

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
