#include "eval/calibration/decay_calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "eval/report/svg_plot.h"

namespace memdecay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Logarithms round; a step that is met exactly must count as met.
constexpr double kRounding = 1e-9;

}  // namespace

SurvivalCurve survival_curve(std::span<const UseRecord> records, Region region,
                             std::int64_t quiet_steps) {
  MEMDECAY_CHECK(quiet_steps >= 0);
  std::vector<LifeCount> lives;
  for (const UseRecord& record : records) {
    if (record.region != region) continue;
    MEMDECAY_CHECK(record.born <= record.last_use && record.last_use <= record.run_end);
    const bool ended = record.run_end - record.last_use >= std::max<std::int64_t>(quiet_steps, 1);
    lives.push_back({record.last_use - record.born, ended ? 1 : 0, ended ? 0 : 1});
  }
  return survival_curve(std::move(lives));
}

std::array<RegionCalibration, kRegionCount> calibrate_decay(std::span<const UseRecord> records,
                                                            const CalibrationOptions& options) {
  std::array<RegionCalibration, kRegionCount> regions;
  for (const Region region : kRegions) {
    RegionCalibration& one = regions[region_index(region)];
    one.region = region;
    one.curve = survival_curve(records, region, options.quiet_steps);
    one.fits = fit_survival(one.curve);
    one.survival_steps = one.curve.steps_at(options.wished_share);
    if (std::isinf(one.survival_steps) && !one.fits.empty())
      one.survival_steps = one.fits.front().steps_at(options.wished_share);
    if (region == Region::kSystem) one.survival_steps = kInfinity;
    one.survival_steps = std::max(one.survival_steps, 1.0);
    one.decay = std::isinf(one.survival_steps)
                    ? 0.0
                    : decay_for_survival(kInitialScores[region_index(region)], one.survival_steps,
                                         options.threshold);
  }
  return regions;
}

double share_in_use(const RegionCalibration& region, double decay, double threshold) {
  const double steps =
      survival_for_decay(kInitialScores[region_index(region.region)], decay, threshold);
  double share = 1;
  for (const SurvivalPoint& point : region.curve.points) {
    if (point.steps <= steps * (1 + kRounding)) share = point.share;
  }
  return share;
}

nlohmann::ordered_json calibration_json(const std::array<RegionCalibration, kRegionCount>& regions,
                                        const CalibrationOptions& options) {
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json json = {{"threshold", options.threshold},
                                 {"wished_share", options.wished_share},
                                 {"quiet_steps", options.quiet_steps},
                                 {"regions", nlohmann::ordered_json::object()}};
  for (const RegionCalibration& region : regions) {
    nlohmann::ordered_json fits = nlohmann::ordered_json::array();
    for (const SurvivalFit& fit : region.fits) {
      fits.push_back({{"shape", survival_shape_name(fit.shape)},
                      {"a", fit.a},
                      {"b", fit.b},
                      {"w", fit.w},
                      {"error", fit.error},
                      {"aic", number(fit.aic)}});
    }
    json["regions"][std::string(region_name(region.region))] = {
        {"initial", kInitialScores[region_index(region.region)]},
        {"decay", region.decay},
        {"survival_steps", number(region.survival_steps)},
        {"items", region.curve.items},
        {"ended", region.curve.ended},
        {"fits", std::move(fits)}};
  }
  return json;
}

std::string calibration_svg(const std::array<RegionCalibration, kRegionCount>& regions) {
  SvgPlot plot{
      "Survival per region", {"steps since birth (tokens)", true}, {"share in use", false}, {}};
  for (const RegionCalibration& region : regions) {
    if (region.curve.items == 0) continue;
    PlotSeries curve{std::string(region_name(region.region)), {}};
    for (const SurvivalPoint& point : region.curve.points)
      curve.points.push_back({std::max(point.steps, 1.0), point.share});
    plot.series.push_back(curve);
    if (region.fits.empty()) continue;
    const SurvivalFit& best = region.fits.front();
    PlotSeries fit{
        fmt::format("{}: {}", region_name(region.region), survival_shape_name(best.shape)), {}};
    const double last = std::max(region.curve.points.back().steps, 2.0);
    for (int i = 0; i <= 80; ++i) {
      const double steps = std::pow(last, i / 80.0);
      fit.points.push_back({steps, best.share_at(steps)});
    }
    plot.series.push_back(std::move(fit));
  }
  return render_svg(plot);
}

}  // namespace memdecay
