// Widening: pages of any form as fp32 panels, [panel][row][2 vectors], for many query rows. Codes
// are widened only where heads have an odd size, and slowly.
//
// Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_tile.h"

namespace memdecay {
namespace {

/// One page of a tile, written into its part of the panels.
template <typename L>
class PageWidening {
 public:
  static constexpr int kPanel = 2 * L::kWidth;

  /// `first_slot` is the page's within the tile.
  PageWidening(const KvPageLayout& form, const std::byte* keys, int first_slot)
      : form_(form), keys_(keys), first_slot_(first_slot) {}

  void keys_to(float* panels) const {
    const int head_dim = form_.head_dim;
    const int slots = form_.page_tokens;
    for (int slot = 0; slot < slots; slot += L::kWidth) {
      const int at = first_slot_ + slot;
      float* to = panels + at / kPanel * kPanel * head_dim + at % kPanel;
      for (int d = 0; d < head_dim; ++d, to += kPanel) {
        if (is_quantized(form_.format)) {
          for (int i = 0; i < L::kWidth; ++i) to[i] = coded_key(slot + i, d);
        } else {
          L::store(to, load(keys_, d * slots + slot));
        }
      }
    }
  }

  /// The first `filled` slots; dimensions past head_dim become 0.
  void values_to(float* panels, int filled) const {
    const int head_dim = form_.head_dim;
    const std::byte* values = keys_ + form_.key_bytes();
    for (int slot = 0; slot < filled; ++slot) {
      float* to = panels + std::ptrdiff_t{first_slot_ + slot} * kPanel;
      for (int d = 0; d < head_dim; d += L::kWidth) {
        float* part = to + d / kPanel * kPanel * kAttentionTileSlots + d % kPanel;
        if (!is_quantized(form_.format) && d + L::kWidth <= head_dim) {
          L::store(part, load(values, slot * head_dim + d));
          continue;
        }
        for (int i = 0; i < L::kWidth; ++i) {
          part[i] = d + i < head_dim ? value(values, slot, d + i) : 0.0f;
        }
      }
    }
  }

 private:
  typename L::Floats load(const std::byte* from, std::ptrdiff_t i) const {
    return form_.format == KvFormat::kF32
               ? L::load(reinterpret_cast<const float*>(from) + i)
               : L::load_half(reinterpret_cast<const std::uint16_t*>(from) + i);
  }

  float coded_key(int slot, int d) const {
    const CodePlace place = code_place(key_bits(form_.format), d, slot, form_.page_tokens);
    return number(keys_, place, key_bits(form_.format), keys_ + form_.key_code_bytes(), d,
                  form_.head_dim);
  }

  float value(const std::byte* values, int slot, int d) const {
    const std::ptrdiff_t i = std::ptrdiff_t{slot} * form_.head_dim + d;
    if (form_.format == KvFormat::kF32) return reinterpret_cast<const float*>(values)[i];
    if (form_.format == KvFormat::kF16) {
      return half_to_float(reinterpret_cast<const std::uint16_t*>(values)[i]);
    }
    const int slots = form_.page_tokens;
    const CodePlace place = code_place(value_bits(form_.format), slot, d, form_.head_dim);
    const std::byte* scales = values + form_.value_code_bytes() + d / kValueScaleRun * 4 * slots;
    return number(values, place, value_bits(form_.format), scales, slot, slots);
  }

  /// Scale i is one of `count`, which as many minima follow.
  static float number(const std::byte* codes, CodePlace place, int bits, const std::byte* scales,
                      int i, int count) {
    const int code = (std::to_integer<int>(codes[place.byte]) >> place.shift) & ((1 << bits) - 1);
    const auto* halves = reinterpret_cast<const std::uint16_t*>(scales);
    return __builtin_fmaf(static_cast<float>(code), half_to_float(halves[i]),
                          half_to_float(halves[count + i]));
  }

  const KvPageLayout& form_;
  const std::byte* keys_;
  int first_slot_;
};

}  // namespace
}  // namespace memdecay
