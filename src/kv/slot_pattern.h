// SlotPattern: fills one token's slot of a page with values that follow from a marker, for tests.
//
// Every K and V value of every layer and head of the slot gets its own finite bit pattern, in the
// layout's form; holds() compares bit for bit. In a quantized form the codes carry the pattern and
// the scales stay as they are, so a page can change its form and back while its slots keep their
// markers. Only tests and ReferenceSequence use it; never in the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/paged_kv.h"

namespace memdecay {

class SlotPattern {
 public:
  /// REQUIRES: the page is in the layout's form.
  SlotPattern(const KvPageLayout& layout, const KvPageRef& page, std::int32_t slot)
      : layout_(layout), page_(page), slot_(slot) {}

  void write(std::uint64_t marker) const {
    each_value([&](const Element& element, std::uint64_t number) {
      element.store(pattern(marker, number, element.bits));
      return true;
    });
  }
  bool holds(std::uint64_t marker) const {
    return each_value([&](const Element& element, std::uint64_t number) {
      return element.load() == pattern(marker, number, element.bits);
    });
  }
  bool finite() const {
    if (is_quantized(layout_.format)) return true;
    const std::uint32_t exponent = layout_.format == KvFormat::kF16 ? 0x7C00U : 0x7F800000U;
    return each_value([&](const Element& element, std::uint64_t) {
      return (element.load() & exponent) != exponent;
    });
  }

 private:
  /// A value of 32, 16, 8 or 4 bits.
  struct Element {
    std::byte* at;
    int bits;
    int shift = 0;  ///< within the byte

    static Element coded(std::byte* codes, CodePlace place, int bits) {
      return {codes + place.byte, bits, place.shift};
    }
    static Element plain(std::byte* values, std::size_t index, int bits) {
      return {values + index * static_cast<std::size_t>(bits) / 8, bits};
    }
    std::uint32_t load() const {
      std::uint32_t value = 0;
      std::memcpy(&value, at, bits >= 8 ? bytes() : 1);
      return bits == 4 ? value >> shift & 15U : value;
    }
    void store(std::uint32_t value) const {
      if (bits >= 8) {
        std::memcpy(at, &value, bytes());
        return;
      }
      *at = (*at & ~(std::byte{0x0F} << shift)) | static_cast<std::byte>(value) << shift;
    }
    std::size_t bytes() const { return static_cast<std::size_t>(bits) / 8; }
  };

  /// Calls visit(element, number of the value in the slot) until it says false.
  template <typename Visit>
  bool each_value(const Visit& visit) const {
    std::uint64_t number = 0;
    for (int layer = 0; layer < layout_.layers; ++layer)
      for (int head = 0; head < layout_.kv_heads; ++head)
        for (int d = 0; d < layout_.head_dim; ++d, number += 2) {
          std::byte* const keys = page_.base + layout_.head_offset(layer, head);
          if (!visit(key(keys, d), number)) return false;
          if (!visit(value(keys + layout_.key_bytes(), d), number + 1)) return false;
        }
    return true;
  }

  Element key(std::byte* keys, int d) const {
    const int bits = key_bits(layout_.format);
    const int slots = layout_.page_tokens;
    if (bits < 16) return Element::coded(keys, code_place(bits, d, slot_, slots), bits);
    return Element::plain(keys, static_cast<std::size_t>(d * slots + slot_), bits);
  }
  Element value(std::byte* values, int d) const {
    const int bits = value_bits(layout_.format);
    const int head_dim = layout_.head_dim;
    if (bits < 16) return Element::coded(values, code_place(bits, slot_, d, head_dim), bits);
    return Element::plain(values, static_cast<std::size_t>(slot_ * head_dim + d), bits);
  }

  static std::uint32_t pattern(std::uint64_t marker, std::uint64_t number, int bits) {
    std::uint64_t x = (marker + number * 0x9E3779B97F4A7C15U) * 0xD1342543DE82EF95U;
    x ^= x >> 29;
    const auto value = static_cast<std::uint32_t>(x);
    if (bits < 16) return value & ((1U << bits) - 1);
    // One exponent bit stays clear: no infinity and no NaN.
    return bits == 16 ? value & 0xBBFFU : value & 0xBF7FFFFFU;
  }

  const KvPageLayout& layout_;
  const KvPageRef& page_;
  int slot_;
};

}  // namespace memdecay
