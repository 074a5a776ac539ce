#include "model/gguf/gguf_value.h"

#include <fmt/format.h>

namespace memdecay {
namespace {

constexpr std::size_t kArrayHeadBytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);

Status ends_inside(GgufValueType type) {
  return make_status(StatusCode::kCorrupt, "the file ends inside the {}",
                     gguf_value_type_name(type));
}

Status check_bools(const std::byte* at, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    if (at[i] != std::byte{0} && at[i] != std::byte{1})
      return make_status(StatusCode::kCorrupt, "a bool is neither 0 nor 1 but {}",
                         std::to_integer<int>(at[i]));
  return {};
}

Status skip_array(GgufCursor& cursor, int depth) {
  if (depth >= kGgufMaxArrayDepth)
    return make_status(StatusCode::kCorrupt, "arrays are nested more than {} deep",
                       kGgufMaxArrayDepth);
  std::uint32_t number = 0;
  std::uint64_t count = 0;
  if (!cursor.read(number) || !cursor.read(count)) return ends_inside(GgufValueType::kArray);
  const auto type = find_gguf_value_type(number);
  if (!type)
    return make_status(StatusCode::kCorrupt, "the array's element type {} is unknown", number);
  const auto too_long = [&] {
    return make_status(StatusCode::kCorrupt,
                       "the array claims {} elements of type {}, more than the file can hold",
                       count, gguf_value_type_name(*type));
  };
  if (const std::size_t item_bytes = gguf_fixed_bytes(*type); item_bytes > 0) {
    const std::byte* const items = cursor.here();
    if (!cursor.skip(count, item_bytes)) return too_long();
    return *type == GgufValueType::kBool ? check_bools(items, count) : Status();
  }
  const std::size_t least = *type == GgufValueType::kString ? sizeof count : kArrayHeadBytes;
  if (count > cursor.remaining() / least) return too_long();
  for (std::uint64_t i = 0; i < count; ++i)
    MEMDECAY_RETURN_IF_ERROR(skip_gguf_value(cursor, *type, depth + 1));
  return {};
}

/// Bytes of the UTF-8 character at the start of `text`, or 0 where there is none.
std::size_t utf8_character_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = at(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xC0U) != 0x80U) return 0;
  if (length == 3 && ((first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) > 0x9F))) return 0;
  if (length == 4 && ((first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) > 0x8F))) return 0;
  return length;
}

}  // namespace

Status skip_gguf_value(GgufCursor& cursor, GgufValueType type, int depth) {
  if (type == GgufValueType::kArray) return skip_array(cursor, depth);
  if (type == GgufValueType::kString) {
    std::string_view text;
    return cursor.read_string(text) ? Status() : ends_inside(type);
  }
  const std::byte* const at = cursor.here();
  if (!cursor.skip(1, gguf_fixed_bytes(type))) return ends_inside(type);
  return type == GgufValueType::kBool ? check_bools(at, 1) : Status();
}

namespace gguf_internal {

Status wrong_type(GgufValueType type, std::string_view wanted) {
  return make_status(StatusCode::kCorrupt, "it has type {} where {} belongs",
                     gguf_value_type_name(type), wanted);
}

Status out_of_range(GgufValueType type, const std::byte* at) {
  return visit_number(type, at, [](auto stored) {
    return make_status(StatusCode::kCorrupt, "the value {} is out of range", stored);
  });
}

Result<std::string_view> string_of(GgufValueType type, std::span<const std::byte> bytes) {
  if (type != GgufValueType::kString) return wrong_type(type, "a string");
  std::string_view text;
  MEMDECAY_CHECK(GgufCursor(bytes).read_string(text));
  return text;
}

Result<GgufArray> array_of(GgufValueType type, std::span<const std::byte> bytes) {
  if (type != GgufValueType::kArray) return wrong_type(type, "an array");
  GgufCursor cursor(bytes);
  std::uint32_t number = 0;
  std::uint64_t count = 0;
  MEMDECAY_CHECK(cursor.read(number) && cursor.read(count));
  const auto element_type = find_gguf_value_type(number);
  MEMDECAY_CHECK(element_type.has_value());
  return GgufArray(*element_type, static_cast<std::size_t>(count), bytes.subspan(kArrayHeadBytes));
}

}  // namespace gguf_internal

std::string_view GgufStrings::Iterator::operator*() const {
  std::string_view text;
  MEMDECAY_CHECK(GgufCursor(bytes_).read_string(text));
  return text;
}

GgufStrings::Iterator& GgufStrings::Iterator::operator++() {
  bytes_ = bytes_.subspan(sizeof(std::uint64_t) + (**this).size());
  --left_;
  return *this;
}

Result<GgufStrings> GgufArray::strings() const {
  if (count_ == 0) return GgufStrings();
  if (element_type_ != GgufValueType::kString)
    return gguf_internal::wrong_type(element_type_, "a string").with_context("in an array");
  return GgufStrings(bytes_, count_);
}

GgufValue GgufArray::element(std::size_t index) const {
  MEMDECAY_CHECK(index < count_);
  if (const std::size_t item_bytes = gguf_fixed_bytes(element_type_); item_bytes > 0)
    return {element_type_, bytes_.subspan(index * item_bytes, item_bytes)};
  GgufCursor cursor(bytes_);
  for (std::size_t i = 0; i < index; ++i)
    MEMDECAY_CHECK(skip_gguf_value(cursor, element_type_).ok());
  const std::size_t begin = cursor.position();
  MEMDECAY_CHECK(skip_gguf_value(cursor, element_type_).ok());
  return {element_type_, bytes_.subspan(begin, cursor.position() - begin)};
}

std::string quote_gguf_text(std::string_view text, std::size_t max_characters) {
  std::string quoted = "\"";
  for (std::size_t shown = 0; !text.empty(); ++shown) {
    if (shown == max_characters) return quoted + "...\"";
    const std::size_t length = utf8_character_bytes(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte == '\n') {
      quoted += "\\n";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + "\"";
}

std::string GgufValue::describe(std::size_t max_characters) const {
  if (type_ == GgufValueType::kString)
    return quote_gguf_text(as<std::string_view>().value(), max_characters);
  if (type_ == GgufValueType::kBool) return as<bool>().value() ? "true" : "false";
  if (type_ != GgufValueType::kArray)
    return gguf_internal::visit_number(type_, bytes_.data(),
                                       [](auto stored) { return fmt::format("{}", stored); });
  const GgufArray array = as<GgufArray>().value();
  constexpr std::size_t kListed = 8;
  if (array.size() > kListed || array.element_type() == GgufValueType::kArray)
    return fmt::format("[{} x {}]", array.size(), gguf_value_type_name(array.element_type()));
  std::string list = "[";
  for (std::size_t i = 0; i < array.size(); ++i)
    list += (i > 0 ? ", " : "") + array.element(i).describe(max_characters);
  return list + "]";
}

}  // namespace memdecay
