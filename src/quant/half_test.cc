#include "quant/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace memdecay {
namespace {

/// The value of a half, by its definition.
double defined_value(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10) & 0x1f);
  const double mantissa = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryFiniteHalfIsItsDefinition) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    if (((half >> 10) & 0x1f) == 0x1f) continue;
    const float value = half_to_float(static_cast<std::uint16_t>(half));
    ASSERT_EQ(static_cast<double>(value), defined_value(half)) << half;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << half;
    ASSERT_EQ(float_to_half(value), half);
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  for (std::uint32_t half = 0; half < 0x7bff; ++half) {
    const auto low = static_cast<std::uint16_t>(half);
    const auto high = static_cast<std::uint16_t>(half + 1);
    const float middle = (half_to_float(low) + half_to_float(high)) / 2;  // exact in fp32
    ASSERT_EQ(float_to_half(middle), half % 2 == 0 ? low : high) << half;
    ASSERT_EQ(float_to_half(std::nextafterf(middle, 0)), low) << half;
    ASSERT_EQ(float_to_half(std::nextafterf(middle, 1e9f)), high) << half;
    ASSERT_EQ(float_to_half(-middle), 0x8000u | (half % 2 == 0 ? low : high));
  }
}

TEST(Half, LargeTinyInfiniteAndNotANumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(-3e38f), 0xfc00);
  EXPECT_EQ(float_to_half(kInfinity), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);
  EXPECT_EQ(float_to_half(0x1.000002p-25f), 1);
  EXPECT_EQ(float_to_half(-1e-40f), 0x8000);
  EXPECT_EQ(half_to_float(0x7c00), kInfinity);
  EXPECT_EQ(half_to_float(0xfc00), -kInfinity);
  EXPECT_TRUE(std::isnan(half_to_float(0x7c01)));
  EXPECT_TRUE(std::isnan(half_to_float(0xfe00)));
  const std::uint16_t nan = float_to_half(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(half_to_float(nan)));
}

TEST(BFloat16, RoundsToNearestTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    ASSERT_EQ(float_to_bfloat16(bfloat16_to_float(low)), low);
    const float middle = std::bit_cast<float>((bits << 16) | 0x8000u);
    ASSERT_EQ(float_to_bfloat16(middle), bits % 2 == 0 ? low : high);
    ASSERT_EQ(float_to_bfloat16(std::bit_cast<float>((bits << 16) | 0x7fffu)), low);
    ASSERT_EQ(float_to_bfloat16(std::bit_cast<float>((bits << 16) | 0x8001u)), high);
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bfloat16(-kInfinity), 0xff80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace memdecay
