#include "quant/weight_type.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "quant/dequantize_golden.h"

namespace memdecay {
namespace {

TEST(WeightType, DequantizesAsTheGgufPackageDoes) {
  for (const DequantizeGolden& golden : kDequantizeGolden) {
    std::vector<float> values(golden.float_bits.size());
    dequantize_weights(golden.type, std::as_bytes(std::span(golden.source)), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], std::bit_cast<float>(golden.float_bits[i]))
          << weight_type_traits(golden.type).name << " value " << i;
    }
  }
}

TEST(WeightType, FloatsAreCopied) {
  const std::vector<float> source = {0.0f, -1.5f, 3e38f, 1e-45f};
  std::vector<float> values(source.size());
  dequantize_weights(WeightType::kF32, std::as_bytes(std::span(source)), values);
  EXPECT_EQ(values, source);
}

TEST(WeightType, TraitsAreInOrderAndFindable) {
  std::uint32_t last = 0;
  for (const WeightTypeTraits& traits : weight_types()) {
    const auto number = static_cast<std::uint32_t>(traits.type);
    EXPECT_TRUE(number > last || number == 0);
    last = number;
    ASSERT_TRUE(find_weight_type(number).has_value());
    EXPECT_EQ(find_weight_type(number)->name, traits.name);
    EXPECT_EQ(weight_type_traits(traits.type).block_bytes, traits.block_bytes);
    EXPECT_EQ(gguf_type_name(number), traits.name);
  }
  EXPECT_EQ(weight_types().size(), 14u);
  EXPECT_FALSE(find_weight_type(17).has_value());
  EXPECT_FALSE(find_weight_type(0xffffffffu).has_value());
}

TEST(WeightType, NamesTypesThatItCannotRead) {
  EXPECT_EQ(gguf_type_name(17), "IQ2_XS");
  EXPECT_EQ(gguf_type_name(39), "MXFP4");
  EXPECT_EQ(gguf_type_name(77), "type 77");
  EXPECT_EQ(gguf_type_name(0xffffffffu), "a type number above 255");
}

TEST(WeightType, RowBytes) {
  EXPECT_EQ(weight_row_bytes(WeightType::kQ4_K, 512), 288u);
  EXPECT_EQ(weight_row_bytes(WeightType::kQ8_0, 896), 952u);
  EXPECT_EQ(weight_row_bytes(WeightType::kF32, 3), 12u);
  EXPECT_EQ(weight_row_bytes(WeightType::kQ4_0, 0), 0u);
}

}  // namespace
}  // namespace memdecay
