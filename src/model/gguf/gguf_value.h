// GgufValue and GgufArray: views of one metadata value inside a GGUF file's bytes.
//
// Views: two words and a type, copied freely, valid as long as the file is mapped. Nothing is
// decoded before it is asked for and nothing is copied: a vocabulary of 262,144 pieces costs no
// memory. GgufFile::open has checked every length, so decoding cannot leave the value's bytes
// (a file that is changed while it is mapped ends in a CHECK). Any thread.
//
// Conversions are exact or a kCorrupt sentence: an integer of any width reads as any other that can
// hold its value; float32 and float64 read as either (a float64 rounds to float); nothing else
// converts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/status.h"
#include "model/gguf/gguf_cursor.h"
#include "model/gguf/gguf_value_type.h"

namespace memdecay {

/// Arrays may hold arrays this deep; deeper files are refused.
inline constexpr int kGgufMaxArrayDepth = 4;

/// The strings of an array, in order. Only forward: each one's place is known from the one before.
class GgufStrings {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.left_ == b.left_; }

   private:
    friend class GgufStrings;
    Iterator(std::span<const std::byte> bytes, std::size_t left) : bytes_(bytes), left_(left) {}
    std::span<const std::byte> bytes_;
    std::size_t left_ = 0;
  };

  GgufStrings() = default;
  GgufStrings(std::span<const std::byte> bytes, std::size_t count) : bytes_(bytes), count_(count) {}
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Iterator begin() const { return {bytes_, count_}; }
  Iterator end() const { return {}; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t count_ = 0;
};

/// The numbers of an array as T, by index.
template <typename T>
class GgufNumbers {
 public:
  GgufNumbers() = default;
  GgufNumbers(GgufValueType stored, const std::byte* bytes, std::size_t count)
      : stored_(stored), bytes_(bytes), count_(count) {}
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  /// REQUIRES: index < size().
  T operator[](std::size_t index) const;

 private:
  GgufValueType stored_ = GgufValueType::kUint8;
  const std::byte* bytes_ = nullptr;
  std::size_t count_ = 0;
};

class GgufArray;

class GgufValue {
 public:
  /// `bytes` begin with the value, which skip_gguf_value has accepted; they may reach beyond it.
  GgufValue(GgufValueType type, std::span<const std::byte> bytes) : type_(type), bytes_(bytes) {}

  GgufValueType type() const { return type_; }
  /// T: bool, any integer, float, double, std::string_view or GgufArray.
  template <typename T>
  Result<T> as() const;
  /// As a person reads it: 7, 1e-05, true, "text" (control characters escaped, cut after
  /// `max_characters`), [262144 strings].
  std::string describe(std::size_t max_characters = 80) const;

 private:
  GgufValueType type_;
  std::span<const std::byte> bytes_;
};

class GgufArray {
 public:
  GgufArray() = default;
  GgufArray(GgufValueType element_type, std::size_t count, std::span<const std::byte> bytes)
      : element_type_(element_type), count_(count), bytes_(bytes) {}

  GgufValueType element_type() const { return element_type_; }
  std::size_t size() const { return count_; }
  Result<GgufStrings> strings() const;
  /// T: bool, any integer, float or double. O(1) where every stored value fits T, else one pass.
  template <typename T>
  Result<GgufNumbers<T>> numbers() const;
  /// Element `index`, also of arrays of arrays; O(index) for strings and arrays.
  /// REQUIRES: index < size().
  GgufValue element(std::size_t index) const;

 private:
  GgufValueType element_type_ = GgufValueType::kUint8;
  std::size_t count_ = 0;
  std::span<const std::byte> bytes_;
};

/// Passes over one value of `type`, or says what is wrong with it: the check that every view above
/// relies on. `depth` counts the arrays around it.
Status skip_gguf_value(GgufCursor& cursor, GgufValueType type, int depth = 0);

/// Text in quotes for a message: control characters escaped, cut after `max_characters`.
std::string quote_gguf_text(std::string_view text, std::size_t max_characters = 80);

}  // namespace memdecay

#include "model/gguf/gguf_value_inl.h"
