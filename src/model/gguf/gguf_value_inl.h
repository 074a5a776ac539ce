// The templates of gguf_value.h: included by it alone.
#pragma once

#include "model/gguf/gguf_value.h"

namespace memdecay {
namespace gguf_internal {

/// Calls `visit` with the stored number in its own type. REQUIRES: `type` is a number or bool.
template <typename Visitor>
auto visit_number(GgufValueType type, const std::byte* at, Visitor visit) {
  switch (type) {
    case GgufValueType::kUint8:
    case GgufValueType::kBool:
      return visit(read_little_endian<std::uint8_t>(at));
    case GgufValueType::kInt8:
      return visit(read_little_endian<std::int8_t>(at));
    case GgufValueType::kUint16:
      return visit(read_little_endian<std::uint16_t>(at));
    case GgufValueType::kInt16:
      return visit(read_little_endian<std::int16_t>(at));
    case GgufValueType::kUint32:
      return visit(read_little_endian<std::uint32_t>(at));
    case GgufValueType::kInt32:
      return visit(read_little_endian<std::int32_t>(at));
    case GgufValueType::kUint64:
      return visit(read_little_endian<std::uint64_t>(at));
    case GgufValueType::kInt64:
      return visit(read_little_endian<std::int64_t>(at));
    case GgufValueType::kFloat32:
      return visit(read_little_endian<float>(at));
    case GgufValueType::kFloat64:
      return visit(read_little_endian<double>(at));
    case GgufValueType::kString:
    case GgufValueType::kArray:
      break;
  }
  check_failed(__FILE__, __LINE__, "a string or an array is not a number");
}

inline bool is_float(GgufValueType type) {
  return type == GgufValueType::kFloat32 || type == GgufValueType::kFloat64;
}
inline bool is_integer(GgufValueType type) {
  return !is_float(type) && type != GgufValueType::kBool && type != GgufValueType::kString &&
         type != GgufValueType::kArray;
}

/// Whether values stored as `type` may be read as T at all (their range is another question).
template <typename T>
bool converts(GgufValueType type) {
  if constexpr (std::is_same_v<T, bool>) {
    return type == GgufValueType::kBool;
  } else if constexpr (std::is_floating_point_v<T>) {
    return is_float(type);
  } else {
    static_assert(std::is_integral_v<T>);
    return is_integer(type);
  }
}

/// Whether T holds every value of stored integers of `type`.
template <typename T>
bool holds_all(GgufValueType type) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const std::byte bytes[sizeof(std::uint64_t)] = {};
    return visit_number(type, bytes, [](auto stored) {
      using Stored = decltype(stored);
      if constexpr (std::is_integral_v<Stored>) {
        return std::in_range<T>(std::numeric_limits<Stored>::min()) &&
               std::in_range<T>(std::numeric_limits<Stored>::max());
      } else {
        return true;
      }
    });
  } else {
    return true;
  }
}

template <typename T>
T convert(GgufValueType type, const std::byte* at) {
  return visit_number(type, at, [](auto stored) {
    if constexpr (std::is_same_v<T, bool>) {
      return stored != 0;
    } else {
      return static_cast<T>(stored);
    }
  });
}

template <typename T>
bool fits(GgufValueType type, const std::byte* at) {
  return visit_number(type, at, [](auto stored) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                  std::is_integral_v<decltype(stored)>) {
      return std::in_range<T>(stored);
    } else {
      return true;
    }
  });
}

template <typename T>
constexpr std::string_view wanted_name() {
  if constexpr (std::is_same_v<T, bool>) {
    return "a bool";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "a floating-point number";
  } else {
    return "an integer";
  }
}

Result<std::string_view> string_of(GgufValueType type, std::span<const std::byte> bytes);
Result<GgufArray> array_of(GgufValueType type, std::span<const std::byte> bytes);
Status wrong_type(GgufValueType type, std::string_view wanted);
Status out_of_range(GgufValueType type, const std::byte* at);

}  // namespace gguf_internal

template <typename T>
T GgufNumbers<T>::operator[](std::size_t index) const {
  MEMDECAY_DCHECK(index < count_);
  return gguf_internal::convert<T>(stored_, bytes_ + index * gguf_fixed_bytes(stored_));
}

template <typename T>
Result<T> GgufValue::as() const {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return gguf_internal::string_of(type_, bytes_);
  } else if constexpr (std::is_same_v<T, GgufArray>) {
    return gguf_internal::array_of(type_, bytes_);
  } else {
    if (!gguf_internal::converts<T>(type_))
      return gguf_internal::wrong_type(type_, gguf_internal::wanted_name<T>());
    if (!gguf_internal::fits<T>(type_, bytes_.data()))
      return gguf_internal::out_of_range(type_, bytes_.data());
    return gguf_internal::convert<T>(type_, bytes_.data());
  }
}

template <typename T>
Result<GgufNumbers<T>> GgufArray::numbers() const {
  // Writers give an empty array any element type they like.
  if (count_ == 0) return GgufNumbers<T>();
  if (!gguf_internal::converts<T>(element_type_))
    return gguf_internal::wrong_type(element_type_, gguf_internal::wanted_name<T>())
        .with_context("in an array");
  if (!gguf_internal::holds_all<T>(element_type_)) {
    for (std::size_t i = 0; i < count_; ++i) {
      const std::byte* const at = bytes_.data() + i * gguf_fixed_bytes(element_type_);
      if (!gguf_internal::fits<T>(element_type_, at))
        return gguf_internal::out_of_range(element_type_, at);
    }
  }
  return GgufNumbers<T>(element_type_, bytes_.data(), count_);
}

}  // namespace memdecay
