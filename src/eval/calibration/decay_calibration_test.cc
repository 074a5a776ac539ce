#include "eval/calibration/decay_calibration.h"

#include <gtest/gtest.h>

#include <cmath>

namespace memdecay {
namespace {

constexpr std::int64_t kLongRun = 1'000'000'000;

UseRecord life(std::int64_t steps, std::int64_t run_end = kLongRun, Region region = Region::kTool) {
  return {region, 100, 100 + steps, run_end};
}

TEST(Calibration, ItsCurveIsTheProductLimitEstimate) {
  // Lives of 5, 10, 10+ (censored), 20; one that was never used again.
  const std::vector<UseRecord> records = {
      life(10), life(0), life(20), life(5), life(10, 115), life(7, kLongRun, Region::kRecent)};
  const SurvivalCurve curve = survival_curve(records, Region::kTool, 10);
  EXPECT_EQ(curve.items, 5);
  EXPECT_EQ(curve.ended, 4);
  ASSERT_EQ(curve.points.size(), 4U);
  const std::vector<SurvivalPoint> expected = {{0, 0.8}, {5, 0.6}, {10, 0.4}, {20, 0.0}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(curve.points[i].steps, expected[i].steps);
    EXPECT_NEAR(curve.points[i].share, expected[i].share, 1e-12);
  }
}

TEST(Calibration, WithoutEndsItsCurveStaysAtOne) {
  const std::vector<UseRecord> records = {life(10, 112), life(4, 105)};
  const SurvivalCurve curve = survival_curve(records, Region::kTool, 50);
  EXPECT_EQ(curve.ended, 0);
  ASSERT_EQ(curve.points.size(), 1U);
  EXPECT_TRUE(std::isinf(curve.steps_at(0.5)));
  EXPECT_TRUE(fit_survival(curve).empty());
}

TEST(Calibration, DecayBringsTheScoreToTheThresholdWhenTheShareIsWished) {
  std::vector<UseRecord> records;
  for (int i = 1; i <= 100; ++i) {
    records.push_back(life(10 * i));
    records.push_back(life(i, kLongRun, Region::kSystem));
  }
  const auto regions = calibrate_decay(records);
  const RegionCalibration& tool = regions[region_index(Region::kTool)];
  EXPECT_EQ(tool.survival_steps, 900);  // ten of a hundred live longer
  EXPECT_NEAR(tool.decay, std::log(5.0 / 0.1) / 900, 1e-15);
  EXPECT_NEAR(share_in_use(tool, tool.decay, kDecayThreshold), 0.1, 1e-9);
  EXPECT_NEAR(share_in_use(tool, 2 * tool.decay, kDecayThreshold), 0.55, 1e-9);
  EXPECT_EQ(share_in_use(tool, 0.0, kDecayThreshold), 0.0);
  EXPECT_EQ(regions[region_index(Region::kSystem)].decay, 0.0);
  EXPECT_EQ(regions[region_index(Region::kRecent)].decay, 0.0);  // nothing is known
  const nlohmann::ordered_json json = calibration_json(regions, CalibrationOptions());
  EXPECT_EQ(json.at("regions").at("tool").at("survival_steps"), 900.0);
  EXPECT_TRUE(json.at("regions").at("system").at("survival_steps").is_null());
  EXPECT_EQ(json.at("regions").at("tool").at("fits").size(), 3U);
  const std::string svg = calibration_svg(regions);
  EXPECT_NE(svg.find(">tool<"), std::string::npos);
  EXPECT_EQ(svg.find(">recent<"), std::string::npos);
}

TEST(Calibration, ACurveThatEndsAboveTheWishIsDrawnOutByItsFit) {
  std::vector<UseRecord> records;
  for (int i = 1; i <= 1000; ++i) {
    const auto steps = static_cast<std::int64_t>(-1000.0 * std::log((i - 0.5) / 1000.0));
    records.push_back(steps < 1500 ? life(steps) : life(1500, 1600));  // the run ended
  }
  CalibrationOptions options;
  options.quiet_steps = 200;
  const auto regions = calibrate_decay(records, options);
  EXPECT_NEAR(regions[region_index(Region::kTool)].survival_steps, 1000.0 * std::log(10.0), 60.0);
}

}  // namespace
}  // namespace memdecay
