// GgufTensor: one entry of a GGUF file's tensor directory. A view into the file; copied freely.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "quant/weight_type.h"

namespace memdecay {

inline constexpr int kGgufMaxDimensions = 4;

struct GgufTensor {
  std::string_view name;
  int dimension_count = 0;  ///< 1..4
  /// dimensions[0] is the length of a row (the inputs of a matrix), the fastest to vary; those
  /// above dimension_count are 1.
  std::array<std::int64_t, kGgufMaxDimensions> dimensions = {1, 1, 1, 1};
  std::uint32_t type_number = 0;  ///< GGUF's number, also where this build cannot read the type
  std::optional<WeightType> type;
  std::uint64_t file_offset = 0;     ///< of the first byte of data, from the start of the file
  std::span<const std::byte> bytes;  ///< the data; empty where type is

  std::int64_t row_values() const { return dimensions[0]; }
  std::int64_t rows() const { return dimensions[1] * dimensions[2] * dimensions[3]; }
  std::int64_t values() const { return row_values() * rows(); }
  /// "[576, 49152]"
  std::string shape_text() const;
};

}  // namespace memdecay
