// SlotPattern: fills one token's slot of a page with values that follow from a marker, for tests.
//
// Every K and V value of every layer and head of the slot gets its own finite bit pattern, in the
// page's format; holds() compares bit for bit. Only ReferenceCache uses it; never in the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/paged_kv.h"

namespace memdecay {

class SlotPattern {
 public:
  SlotPattern(const KvPageLayout& layout, const KvPageRef& page, std::int32_t slot)
      : layout_(layout), page_(page), slot_(static_cast<std::size_t>(slot)) {}

  void write(std::uint64_t marker) const {
    each_value([&](std::byte* at, std::uint64_t number) {
      const std::uint32_t bits = value_bits(marker, number);
      std::memcpy(at, &bits, kv_element_bytes(layout_.format));
      return true;
    });
  }
  bool holds(std::uint64_t marker) const {
    return each_value([&](const std::byte* at, std::uint64_t number) {
      return load(at) == value_bits(marker, number);
    });
  }
  bool finite() const {
    const std::uint32_t exponent = layout_.format == KvFormat::kF16 ? 0x7C00U : 0x7F800000U;
    return each_value(
        [&](const std::byte* at, std::uint64_t) { return (load(at) & exponent) != exponent; });
  }

 private:
  /// Calls visit(address, number of the value in the slot) until it says false.
  template <typename Visit>
  bool each_value(const Visit& visit) const {
    const auto head_dim = static_cast<std::size_t>(layout_.head_dim);
    const auto page_tokens = static_cast<std::size_t>(layout_.page_tokens);
    const std::size_t bytes = kv_element_bytes(layout_.format);
    std::uint64_t number = 0;
    for (int layer = 0; layer < layout_.layers; ++layer)
      for (int head = 0; head < layout_.kv_heads; ++head) {
        std::byte* const keys = page_.base + layout_.head_offset(layer, head);
        std::byte* const values = keys + layout_.key_bytes();
        for (std::size_t d = 0; d < head_dim; ++d, number += 2) {
          if (!visit(keys + (d * page_tokens + slot_) * bytes, number)) return false;
          if (!visit(values + (slot_ * head_dim + d) * bytes, number + 1)) return false;
        }
      }
    return true;
  }

  std::uint32_t value_bits(std::uint64_t marker, std::uint64_t number) const {
    std::uint64_t x = (marker + number * 0x9E3779B97F4A7C15U) * 0xD1342543DE82EF95U;
    x ^= x >> 29;
    const auto bits = static_cast<std::uint32_t>(x);
    // One exponent bit stays clear: no infinity and no NaN.
    return layout_.format == KvFormat::kF16 ? bits & 0xBBFFU : bits & 0xBF7FFFFFU;
  }
  std::uint32_t load(const std::byte* at) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, kv_element_bytes(layout_.format));
    return bits;
  }

  const KvPageLayout& layout_;
  const KvPageRef& page_;
  std::size_t slot_;
};

}  // namespace memdecay
