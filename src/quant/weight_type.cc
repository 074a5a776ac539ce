#include "quant/weight_type.h"

#include <array>
#include <string>

#include "core/check.h"
#include "quant/dequantize.h"

namespace memdecay {
namespace {

constexpr std::array<WeightTypeTraits, 14> kTypes = {{
    {WeightType::kF32, "F32", 1, 4},
    {WeightType::kF16, "F16", 1, 2},
    {WeightType::kQ4_0, "Q4_0", 32, 18},
    {WeightType::kQ4_1, "Q4_1", 32, 20},
    {WeightType::kQ5_0, "Q5_0", 32, 22},
    {WeightType::kQ5_1, "Q5_1", 32, 24},
    {WeightType::kQ8_0, "Q8_0", 32, 34},
    {WeightType::kQ2_K, "Q2_K", 256, 84},
    {WeightType::kQ3_K, "Q3_K", 256, 110},
    {WeightType::kQ4_K, "Q4_K", 256, 144},
    {WeightType::kQ5_K, "Q5_K", 256, 176},
    {WeightType::kQ6_K, "Q6_K", 256, 210},
    {WeightType::kIQ4_NL, "IQ4_NL", 32, 18},
    {WeightType::kBF16, "BF16", 1, 2},
}};

struct NumberedName {
  std::uint32_t number;
  std::string_view name;
};

constexpr std::array<NumberedName, 19> kUnsupportedNames = {{
    {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},
    {25, "I16"},   {26, "I32"},   {27, "I64"},     {28, "F64"},    {29, "IQ1_M"},
    {34, "TQ1_0"}, {35, "TQ2_0"}, {39, "MXFP4"},   {40, "NVFP4"},
}};

/// "type N" for the numbers that have no name here.
std::string_view numbered_type_name(std::uint32_t number) {
  constexpr std::uint32_t kCount = 256;
  static const auto names = [] {
    std::array<std::string, kCount> made;
    for (std::uint32_t n = 0; n < kCount; ++n) made[n] = "type " + std::to_string(n);
    return made;
  }();
  return number < kCount ? std::string_view(names[number]) : "a type number above 255";
}

}  // namespace

std::span<const WeightTypeTraits> weight_types() {
  return kTypes;
}

std::optional<WeightTypeTraits> find_weight_type(std::uint32_t number) {
  for (const WeightTypeTraits& traits : kTypes) {
    if (static_cast<std::uint32_t>(traits.type) == number) return traits;
  }
  return std::nullopt;
}

const WeightTypeTraits& weight_type_traits(WeightType type) {
  for (const WeightTypeTraits& traits : kTypes) {
    if (traits.type == type) return traits;
  }
  check_failed(__FILE__, __LINE__, "type is a WeightType");
}

std::string_view gguf_type_name(std::uint32_t number) {
  for (const WeightTypeTraits& traits : kTypes) {
    if (static_cast<std::uint32_t>(traits.type) == number) return traits.name;
  }
  for (const NumberedName& unsupported : kUnsupportedNames) {
    if (unsupported.number == number) return unsupported.name;
  }
  return numbered_type_name(number);
}

std::size_t weight_row_bytes(WeightType type, std::int64_t values) {
  const WeightTypeTraits& traits = weight_type_traits(type);
  MEMDECAY_CHECK(values >= 0 && values % traits.block_values == 0);
  return static_cast<std::size_t>(values / traits.block_values) * traits.block_bytes;
}

void dequantize_weights(WeightType type, std::span<const std::byte> source, std::span<float> out) {
  const WeightTypeTraits& traits = weight_type_traits(type);
  MEMDECAY_CHECK(source.size() == weight_row_bytes(type, static_cast<std::int64_t>(out.size())));
  const DequantizeBlock dequantize = block_dequantizer(type);
  const auto block_values = static_cast<std::size_t>(traits.block_values);
  const std::size_t blocks = out.size() / block_values;
  for (std::size_t b = 0; b < blocks; ++b) {
    dequantize(source.data() + b * traits.block_bytes, out.data() + b * block_values);
  }
}

}  // namespace memdecay
