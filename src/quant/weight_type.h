// WeightType: how a GGUF file stores a tensor's numbers, and what they mean.
//
// The numeric values are GGUF's own tensor type numbers and never change. A *block* is the smallest
// run of values that shares scales; rows are whole blocks. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace memdecay {

enum class WeightType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kBF16 = 30,
};

struct WeightTypeTraits {
  WeightType type;
  std::string_view name;    ///< as tools print it: "Q4_K"
  int block_values;         ///< values per block
  std::size_t block_bytes;  ///< bytes per block
};

/// All supported types, by rising number.
std::span<const WeightTypeTraits> weight_types();
/// The traits of GGUF tensor type `number`, or nothing when this build cannot read it.
std::optional<WeightTypeTraits> find_weight_type(std::uint32_t number);
const WeightTypeTraits& weight_type_traits(WeightType type);
/// A name for any GGUF tensor type number, also of unsupported ones ("IQ2_XS", "type 77"), for
/// error messages.
std::string_view gguf_type_name(std::uint32_t number);

/// Bytes of a row of `values` values. REQUIRES: values is a multiple of block_values.
std::size_t weight_row_bytes(WeightType type, std::int64_t values);

/// The values that `source` (whole blocks, little-endian, unaligned) stands for: the scalar truth.
/// REQUIRES: source.size() == weight_row_bytes(type, out.size()).
void dequantize_weights(WeightType type, std::span<const std::byte> source, std::span<float> out);

}  // namespace memdecay
