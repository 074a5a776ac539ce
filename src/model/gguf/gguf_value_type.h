// GgufValueType: the kinds of metadata values, by GGUF's own numbers. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace memdecay {

enum class GgufValueType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

/// The type with this number, or nothing when GGUF has none.
std::optional<GgufValueType> find_gguf_value_type(std::uint32_t number);
/// "uint32", "string", ...
std::string_view gguf_value_type_name(GgufValueType type);
/// Bytes of one value; 0 for strings and arrays, whose size is in the file.
std::size_t gguf_fixed_bytes(GgufValueType type);

}  // namespace memdecay
