#include "eval/metrics/survival_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace memdecay {
namespace {

constexpr std::size_t kFittedPoints = 200;

struct LogPoint {
  double steps;
  double log_share;
};
using LogPoints = std::vector<LogPoint>;

/// The points above zero, thinned evenly: long tails would drown the start otherwise.
LogPoints log_points(const SurvivalCurve& curve) {
  LogPoints all;
  for (const SurvivalPoint& point : curve.points) {
    if (point.steps > 0 && point.share > 0) all.push_back({point.steps, std::log(point.share)});
  }
  if (all.size() <= kFittedPoints) return all;
  LogPoints thinned;
  for (std::size_t i = 0; i < kFittedPoints; ++i)
    thinned.push_back(all[i * (all.size() - 1) / (kFittedPoints - 1)]);
  return thinned;
}

double mean_squared_error(const LogPoints& points, const SurvivalFit& fit) {
  double sum = 0;
  for (const LogPoint& point : points) {
    const double share = std::max(fit.share_at(point.steps), 1e-300);
    const double off = std::log(share) - point.log_share;
    sum += off * off;
  }
  return sum / static_cast<double>(points.size());
}

/// Least squares through the origin of ln S = -a * shape(t).
template <typename Shape>
double slope(const LogPoints& points, const Shape& shape) {
  double product = 0, square = 0;
  for (const LogPoint& point : points) {
    const double x = shape(point.steps);
    product += x * -point.log_share;
    square += x * x;
  }
  return square > 0 ? std::max(product / square, 0.0) : 0.0;
}

/// The minimum of a function over [low, high] on a logarithmic axis: a grid, then golden section
/// around its best point.
template <typename Loss>
double minimize(double low, double high, const Loss& loss) {
  constexpr int kGrid = 48;
  const auto at = [&](double place) { return low * std::pow(high / low, place / kGrid); };
  int best = 0;
  double best_loss = loss(at(0));
  for (int i = 1; i <= kGrid; ++i) {
    const double here = loss(at(i));
    if (here < best_loss) {
      best_loss = here;
      best = i;
    }
  }
  constexpr double kGolden = 0.6180339887498949;
  double from = std::max(best - 1, 0), to = std::min(best + 1, kGrid);
  for (int i = 0; i < 60; ++i) {
    const double left = to - kGolden * (to - from), right = from + kGolden * (to - from);
    if (loss(at(left)) <= loss(at(right))) {
      to = right;
    } else {
      from = left;
    }
  }
  return at((from + to) / 2);
}

SurvivalFit fit_exponential(const LogPoints& points) {
  SurvivalFit fit;
  fit.shape = SurvivalShape::kExponential;
  fit.a = slope(points, [](double steps) { return steps; });
  return fit;
}

SurvivalFit fit_power_law(const LogPoints& points) {
  SurvivalFit fit;
  fit.shape = SurvivalShape::kPowerLaw;
  const auto with_scale = [&](double b) {
    fit.b = b;
    fit.a = slope(points, [b](double steps) { return std::log1p(steps / b); });
    return mean_squared_error(points, fit);
  };
  const double last = points.back().steps;
  with_scale(minimize(last * 1e-5, last * 1e3, with_scale));
  return fit;
}

/// Coordinate descent from several starts: the two rates and the share of the first.
SurvivalFit fit_two_components(const LogPoints& points, double single_rate) {
  SurvivalFit best;
  best.error = std::numeric_limits<double>::infinity();
  const double rate = std::max(single_rate, 1e-12);
  for (const double apart : {3.0, 10.0, 40.0}) {
    SurvivalFit fit;
    fit.shape = SurvivalShape::kTwoComponents;
    fit.a = rate * apart;
    fit.b = rate / apart;
    fit.w = 0.5;
    const auto descend = [&](double& parameter, double low, double high) {
      parameter = minimize(low, high, [&](double value) {
        parameter = value;
        return mean_squared_error(points, fit);
      });
    };
    for (int round = 0; round < 12; ++round) {
      descend(fit.w, 0.005, 0.995);
      descend(fit.a, fit.a / 20, fit.a * 20);
      descend(fit.b, fit.b / 20, fit.b * 20);
    }
    fit.error = mean_squared_error(points, fit);
    if (fit.error < best.error) best = fit;
  }
  if (best.b > best.a) {  // the quick one first
    std::swap(best.a, best.b);
    best.w = 1 - best.w;
  }
  return best;
}

void judge(const LogPoints& points, int parameters, SurvivalFit& fit) {
  fit.error = mean_squared_error(points, fit);
  const auto count = static_cast<double>(points.size());
  fit.aic = count * std::log(std::max(fit.error, 1e-30)) + 2.0 * parameters;
}

}  // namespace

const char* survival_shape_name(SurvivalShape shape) {
  constexpr std::array<const char*, kSurvivalShapeCount> kNames = {"exponential", "power_law",
                                                                   "two_components"};
  return kNames[static_cast<std::size_t>(shape)];
}

double SurvivalFit::share_at(double steps) const {
  switch (shape) {
    case SurvivalShape::kExponential:
      return std::exp(-a * steps);
    case SurvivalShape::kPowerLaw:
      return std::pow(1 + steps / b, -a);
    case SurvivalShape::kTwoComponents:
      return w * std::exp(-a * steps) + (1 - w) * std::exp(-b * steps);
  }
  return 0;
}

double SurvivalFit::steps_at(double share) const {
  MEMDECAY_CHECK(share > 0 && share < 1);
  double high = 1;
  while (share_at(high) > share) {
    high *= 2;
    if (high > 1e15) return std::numeric_limits<double>::infinity();
  }
  double low = 0;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (share_at(middle) > share ? low : high) = middle;
  }
  return high;
}

std::vector<SurvivalFit> fit_survival(const SurvivalCurve& curve) {
  const LogPoints points = log_points(curve);
  if (points.size() < 4) return {};
  std::vector<SurvivalFit> fits = {fit_exponential(points), fit_power_law(points)};
  fits.push_back(fit_two_components(points, fits.front().a));
  judge(points, 1, fits[0]);
  judge(points, 2, fits[1]);
  judge(points, 3, fits[2]);
  std::sort(fits.begin(), fits.end(), [](const SurvivalFit& a, const SurvivalFit& b) {
    return std::pair(a.aic, a.shape) < std::pair(b.aic, b.shape);
  });
  return fits;
}

}  // namespace memdecay
