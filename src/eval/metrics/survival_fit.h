// Survival fits: a survival curve in two or three numbers.
//
// Three shapes are fitted to ln S by least squares, and compared by AIC:
//   exponential    S = exp(-a t)
//   power law      S = (1 + t / b)^-a
//   two components S = w exp(-a t) + (1 - w) exp(-b t)
// Pure, any thread. Cost: a tenth of a second a curve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "eval/metrics/survival_curve.h"

namespace memdecay {

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

}  // namespace memdecay
