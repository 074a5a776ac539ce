// GgufCursor: reads little-endian numbers and counted strings from a range of bytes, in order.
//
// Every read says whether it fitted; a read that does not fit leaves the cursor where it was. It
// allocates nothing and never looks outside its range. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace memdecay {

/// The number that the first sizeof(T) bytes at `at` stand for; `at` need not be aligned.
template <typename T>
T read_little_endian(const std::byte* at) {
  static_assert(std::is_arithmetic_v<T>);
  T value;
  std::memcpy(&value, at, sizeof value);  // every supported machine is little-endian
  return value;
}

class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  const std::byte* here() const { return bytes_.data() + position_; }

  template <typename T>
  bool read(T& value) {
    if (remaining() < sizeof value) return false;
    value = read_little_endian<T>(here());
    position_ += sizeof value;
    return true;
  }
  /// A 64-bit length and that many bytes.
  bool read_string(std::string_view& text) {
    if (remaining() < sizeof(std::uint64_t)) return false;
    const auto length = read_little_endian<std::uint64_t>(here());
    if (length > remaining() - sizeof length) return false;
    text = {reinterpret_cast<const char*>(here()) + sizeof length,
            static_cast<std::size_t>(length)};
    position_ += sizeof length + static_cast<std::size_t>(length);
    return true;
  }
  /// Passes over `count` items of `item_bytes` each. REQUIRES: item_bytes > 0.
  bool skip(std::uint64_t count, std::size_t item_bytes) {
    if (count > remaining() / item_bytes) return false;
    position_ += static_cast<std::size_t>(count) * item_bytes;
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace memdecay
