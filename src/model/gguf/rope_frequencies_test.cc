#include "model/gguf/rope_frequencies.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace memdecay {
namespace {

TEST(RopeFrequencies, PlainOnesFallGeometrically) {
  RopeParameters rope;
  rope.dimensions = 8;
  rope.theta = 10000;
  const auto frequencies = rope_frequencies(rope, {});
  ASSERT_EQ(frequencies.size(), 4U);
  EXPECT_DOUBLE_EQ(frequencies[0], 1);
  EXPECT_DOUBLE_EQ(frequencies[1], 0.1);
  EXPECT_DOUBLE_EQ(frequencies[2], 0.01);
  EXPECT_DOUBLE_EQ(frequencies[3], 0.001);
  EXPECT_EQ(rope.magnitude(), 1);
}

TEST(RopeFrequencies, LinearScalingAndDivisorsDivide) {
  RopeParameters rope;
  rope.dimensions = 4;
  rope.theta = 100;
  rope.scaling = RopeScaling::kLinear;
  rope.factor = 8;
  EXPECT_DOUBLE_EQ(rope_frequencies(rope, {})[1], 0.1 / 8);
  EXPECT_EQ(rope.magnitude(), 1);
  rope.scaling = RopeScaling::kNone;
  const std::array<float, 2> divisors = {1, 32};
  EXPECT_DOUBLE_EQ(rope_frequencies(rope, divisors)[0], 1);
  EXPECT_DOUBLE_EQ(rope_frequencies(rope, divisors)[1], 0.1 / 32);
}

// Computed with transformers 5.24 (the "yarn" entry of ROPE_INIT_FUNCTIONS) in single precision:
// heads of 64, theta 1e6, factor 4, original context 32768.
TEST(RopeFrequencies, YarnEqualsTheReference) {
  RopeParameters rope;
  rope.dimensions = 64;
  rope.theta = 1e6;
  rope.scaling = RopeScaling::kYarn;
  rope.factor = 4;
  rope.original_context_length = 32768;
  constexpr std::array<double, 32> kExpected = {1.0,
                                                0.649381638,
                                                0.421696514,
                                                0.273841977,
                                                0.177827939,
                                                0.115478203,
                                                0.0749894157,
                                                0.0486967526,
                                                0.0316227786,
                                                0.0205352511,
                                                0.0133352149,
                                                0.00865964312,
                                                0.00515479548,
                                                0.0030431177,
                                                0.00177853031,
                                                0.00102661771,
                                                0.000583333371,
                                                0.000324690831,
                                                0.000175706868,
                                                9.12806499e-05,
                                                4.44569851e-05,
                                                2.88695483e-05,
                                                1.87473561e-05,
                                                1.21741887e-05,
                                                7.90569356e-06,
                                                5.13381246e-06,
                                                3.33380353e-06,
                                                2.16491094e-06,
                                                1.40585337e-06,
                                                9.1293532e-07,
                                                5.92843435e-07,
                                                3.84981632e-07};
  const auto frequencies = rope_frequencies(rope, {});
  ASSERT_EQ(frequencies.size(), kExpected.size());
  for (std::size_t i = 0; i < kExpected.size(); ++i)
    EXPECT_NEAR(frequencies[i] / kExpected[i], 1, 1e-6) << i;
  EXPECT_NEAR(rope.magnitude(), 1.138629436111989, 1e-12);
}

}  // namespace
}  // namespace memdecay
