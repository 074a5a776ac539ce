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
      : layout_(layout), page_(page), slot_(static_cast<std::size_t>(slot)) {}

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
  /// A value of 32, 16, 8 or 4 bits; those of 4 share a byte with the row's other half.
  struct Element {
    std::byte* at;
    int bits;
    bool high_half;

    static Element in_row(std::byte* row, std::size_t index, std::size_t length, int bits) {
      if (bits >= 8) return {row + index * static_cast<std::size_t>(bits) / 8, bits, false};
      return {row + index % (length / 2), bits, index >= length / 2};
    }
    std::uint32_t load() const {
      std::uint32_t value = 0;
      std::memcpy(&value, at, bits >= 8 ? bytes() : 1);
      if (bits == 4) value = high_half ? value >> 4 : value & 15U;
      return value;
    }
    void store(std::uint32_t value) const {
      if (bits >= 8) {
        std::memcpy(at, &value, bytes());
        return;
      }
      const auto code = static_cast<std::byte>(value);
      *at = high_half ? (*at & std::byte{0x0F}) | code << 4 : (*at & std::byte{0xF0}) | code;
    }
    std::size_t bytes() const { return static_cast<std::size_t>(bits) / 8; }
  };

  /// Calls visit(element, number of the value in the slot) until it says false.
  template <typename Visit>
  bool each_value(const Visit& visit) const {
    const auto head_dim = static_cast<std::size_t>(layout_.head_dim);
    const auto page_tokens = static_cast<std::size_t>(layout_.page_tokens);
    const int k_bits = key_bits(layout_.format), v_bits = value_bits(layout_.format);
    std::uint64_t number = 0;
    for (int layer = 0; layer < layout_.layers; ++layer)
      for (int head = 0; head < layout_.kv_heads; ++head) {
        std::byte* const keys = page_.base + layout_.head_offset(layer, head);
        std::byte* const row = keys + layout_.key_bytes() + slot_ * row_bytes(head_dim, v_bits);
        for (std::size_t d = 0; d < head_dim; ++d, number += 2) {
          std::byte* const channel = keys + d * row_bytes(page_tokens, k_bits);
          if (!visit(Element::in_row(channel, slot_, page_tokens, k_bits), number)) return false;
          if (!visit(Element::in_row(row, d, head_dim, v_bits), number + 1)) return false;
        }
      }
    return true;
  }

  static std::size_t row_bytes(std::size_t elements, int bits) {
    return elements * static_cast<std::size_t>(bits) / 8;
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
  std::size_t slot_;
};

}  // namespace memdecay
