#include "eval/metrics/survival_curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace memdecay {
namespace {

TEST(SurvivalCurve, IsTheProductLimitEstimateOfLivesInAnyOrder) {
  const SurvivalCurve curve =
      survival_curve({{10, 1, 0}, {5, 1, 0}, {20, 1, 0}, {10, 0, 1}, {0, 1, 0}});
  EXPECT_EQ(curve.items, 5);
  EXPECT_EQ(curve.ended, 4);
  ASSERT_EQ(curve.points.size(), 4U);
  const std::vector<SurvivalPoint> expected = {{0, 0.8}, {5, 0.6}, {10, 0.4}, {20, 0.0}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(curve.points[i].steps, expected[i].steps);
    EXPECT_NEAR(curve.points[i].share, expected[i].share, 1e-12);
  }
  EXPECT_EQ(curve.steps_at(0.8), 0);
  EXPECT_EQ(curve.steps_at(0.5), 10);
  EXPECT_EQ(curve.steps_at(0.0), 20);
}

TEST(SurvivalCurve, WithoutEndsItStaysAtOne) {
  const SurvivalCurve curve = survival_curve({{12, 0, 1}, {4, 0, 3}});
  EXPECT_EQ(curve.items, 4);
  ASSERT_EQ(curve.points.size(), 1U);
  EXPECT_TRUE(std::isinf(curve.steps_at(0.5)));
}

}  // namespace
}  // namespace memdecay
