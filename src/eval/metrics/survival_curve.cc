#include "eval/metrics/survival_curve.h"

#include <algorithm>
#include <limits>

namespace memdecay {
namespace {

// Products of shares round; a step that is met exactly must count as met.
constexpr double kRounding = 1e-9;

}  // namespace

double SurvivalCurve::steps_at(double share) const {
  for (const SurvivalPoint& point : points) {
    if (point.share <= share + kRounding) return point.steps;
  }
  return std::numeric_limits<double>::infinity();
}

SurvivalCurve survival_curve(std::vector<LifeCount> lives) {
  std::sort(lives.begin(), lives.end(),
            [](const LifeCount& a, const LifeCount& b) { return a.steps < b.steps; });
  SurvivalCurve curve;
  for (const LifeCount& life : lives) curve.items += life.ended + life.censored;
  curve.points.push_back({0, 1});
  double share = 1;
  std::int64_t at_risk = curve.items;
  for (std::size_t i = 0; i < lives.size();) {
    const std::int64_t steps = lives[i].steps;
    std::int64_t ended = 0;
    std::int64_t censored = 0;
    for (; i < lives.size() && lives[i].steps == steps; ++i) {
      ended += lives[i].ended;
      censored += lives[i].censored;
    }
    if (ended > 0) {
      curve.ended += ended;
      share *= 1.0 - static_cast<double>(ended) / static_cast<double>(at_risk);
      if (steps == 0) {
        curve.points.back().share = share;  // never used again after they were read
      } else {
        curve.points.push_back({static_cast<double>(steps), share});
      }
    }
    at_risk -= ended + censored;
  }
  return curve;
}

}  // namespace memdecay
