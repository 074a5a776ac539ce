#include "eval/metrics/survival_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/seeded_random.h"

namespace memdecay {
namespace {

/// A curve that is exactly this function.
template <typename Share>
SurvivalCurve exact_curve(const Share& share) {
  SurvivalCurve curve;
  curve.points.push_back({0, 1});
  for (int i = 1; i <= 400; ++i) {
    const double steps = 10.0 * i;
    curve.points.push_back({steps, share(steps)});
  }
  return curve;
}

TEST(SurvivalFit, FindsEachShapeAgain) {
  const auto exponential = fit_survival(exact_curve([](double t) { return std::exp(-0.002 * t); }));
  ASSERT_EQ(exponential.size(), 3U);
  EXPECT_NEAR(exponential[0].share_at(1000), std::exp(-2.0), 1e-4);
  for (const SurvivalFit& fit : exponential) {
    if (fit.shape != SurvivalShape::kExponential) continue;
    EXPECT_NEAR(fit.a, 0.002, 1e-12);
    EXPECT_NEAR(fit.steps_at(0.1), std::log(10.0) / 0.002, 1e-6);
  }
  const auto power =
      fit_survival(exact_curve([](double t) { return std::pow(1 + t / 50.0, -1.5); }));
  EXPECT_EQ(power[0].shape, SurvivalShape::kPowerLaw);
  EXPECT_NEAR(power[0].a, 1.5, 1e-3);
  EXPECT_NEAR(power[0].b, 50.0, 0.1);
  EXPECT_NEAR(power[0].steps_at(0.125), 150.0, 0.5);
  const auto two = fit_survival(exact_curve(
      [](double t) { return 0.7 * std::exp(-0.02 * t) + 0.3 * std::exp(-0.0005 * t); }));
  EXPECT_EQ(two[0].shape, SurvivalShape::kTwoComponents);
  EXPECT_NEAR(two[0].w, 0.7, 0.02);
  EXPECT_NEAR(two[0].a, 0.02, 0.002);
  EXPECT_NEAR(two[0].b, 0.0005, 0.00003);
}

TEST(SurvivalFit, AicPrefersFewParametersWhenNoiseIsAllThatIsLeft) {
  SeededRandom random(4);
  const auto fits = fit_survival(
      exact_curve([&](double t) { return std::exp(-0.001 * t + 0.02 * (random.unit() - 0.5)); }));
  EXPECT_EQ(fits[0].shape, SurvivalShape::kExponential);
  EXPECT_LT(fits[0].aic, fits[1].aic);
}

}  // namespace
}  // namespace memdecay
