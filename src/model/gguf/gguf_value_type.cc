#include "model/gguf/gguf_value_type.h"

#include <array>

#include "core/check.h"

namespace memdecay {
namespace {

struct ValueTypeRow {
  std::string_view name;
  std::size_t fixed_bytes;
};

constexpr std::array<ValueTypeRow, 13> kRows = {{{"uint8", 1},
                                                 {"int8", 1},
                                                 {"uint16", 2},
                                                 {"int16", 2},
                                                 {"uint32", 4},
                                                 {"int32", 4},
                                                 {"float32", 4},
                                                 {"bool", 1},
                                                 {"string", 0},
                                                 {"array", 0},
                                                 {"uint64", 8},
                                                 {"int64", 8},
                                                 {"float64", 8}}};

const ValueTypeRow& row(GgufValueType type) {
  const auto index = static_cast<std::size_t>(type);
  MEMDECAY_CHECK(index < kRows.size());
  return kRows[index];
}

}  // namespace

std::optional<GgufValueType> find_gguf_value_type(std::uint32_t number) {
  if (number >= kRows.size()) return std::nullopt;
  return static_cast<GgufValueType>(number);
}

std::string_view gguf_value_type_name(GgufValueType type) {
  return row(type).name;
}

std::size_t gguf_fixed_bytes(GgufValueType type) {
  return row(type).fixed_bytes;
}

}  // namespace memdecay
