// Widening: a tile of any forms as fp32 panels, [panel][row][2 vectors], for many query rows.
//
// Included inside a target region.
#pragma once

#include "kernels/generic/attention_codes.h"

namespace memdecay {
namespace {

/// Vectors of whole rows, by element type. `element` is a multiple of kWidth; a row has `n`.
template <typename L>
struct FloatRow {
  static constexpr int kBits = 32;
  static typename L::Floats load(const std::byte* row, int element, int, const float*) {
    return L::load(reinterpret_cast<const float*>(row) + element);
  }
};

template <typename L>
struct HalfRow {
  static constexpr int kBits = 16;
  static typename L::Floats load(const std::byte* row, int element, int, const float*) {
    return L::load_half(reinterpret_cast<const std::uint16_t*>(row) + element);
  }
};

template <typename L>
struct ByteRow {
  static constexpr int kBits = 8;
  static typename L::Floats load(const std::byte* row, int element, int, const float* pair) {
    return L::fma(L::load_bytes(row + element), L::set(pair[0]), L::set(pair[1]));
  }
};

template <typename L>
struct NibbleRow {
  static constexpr int kBits = 4;
  static typename L::Floats load(const std::byte* row, int element, int n, const float* pair) {
    const int start = element / kChunk * kChunk;
    const int half = std::min(kChunk, n - start) / 2;
    const int in_run = element - start;
    const std::byte* run = row + start / 2;
    if (half == 16) {
      return L::load_nibbles(run + in_run % 16, in_run >= 16, L::set(pair[0]), L::set(pair[1]));
    }
    if (half == 8) {
      return L::load_short_nibbles(run, in_run / L::kWidth, L::set(pair[0]), L::set(pair[1]));
    }
    alignas(64) float numbers[L::kWidth];
    for (int i = 0; i < L::kWidth; ++i) {
      const FourBitPlace place = four_bit_place(element + i, n);
      const int code = (std::to_integer<int>(row[place.byte]) >> place.shift) & 15;
      numbers[i] = __builtin_fmaf(static_cast<float>(code), pair[0], pair[1]);
    }
    return L::load(numbers);
  }
};

/// Panels of one page of a tile: the part of them that starts at the page's first slot.
template <typename L>
class PageWidening {
 public:
  static constexpr int kPanel = 2 * L::kWidth;

  /// `first_slot` is the page's within the tile.
  PageWidening(const KvPageLayout& form, const std::byte* keys, int first_slot)
      : form_(form), keys_(keys), first_slot_(first_slot) {}

  void keys_to(float* panels) const {
    switch (key_bits(form_.format)) {
      case 32:
        return widen_keys<FloatRow<L>>(panels);
      case 16:
        return widen_keys<HalfRow<L>>(panels);
      case 8:
        return widen_keys<ByteRow<L>>(panels);
      default:
        return widen_keys<NibbleRow<L>>(panels);
    }
  }

  /// The first `filled` slots; dimensions past head_dim become 0.
  void values_to(float* panels, int filled) const {
    switch (value_bits(form_.format)) {
      case 32:
        return widen_values<FloatRow<L>>(panels, filled);
      case 16:
        return widen_values<HalfRow<L>>(panels, filled);
      case 8:
        return widen_values<ByteRow<L>>(panels, filled);
      default:
        return widen_values<NibbleRow<L>>(panels, filled);
    }
  }

 private:
  template <typename Row>
  void widen_keys(float* panels) const {
    const int head_dim = form_.head_dim;
    const int slots = form_.page_tokens;
    alignas(64) float pairs[2 * kMaxFastHeadDim];
    if constexpr (Row::kBits < 16) widen_pairs<L>(keys_ + form_.key_code_bytes(), head_dim, pairs);
    for (int slot = 0; slot < slots; slot += L::kWidth) {
      const int at = first_slot_ + slot;
      float* to = panels + at / kPanel * kPanel * head_dim + at % kPanel;
      for (int d = 0; d < head_dim; ++d) {
        const std::byte* row = keys_ + std::ptrdiff_t{d} * slots * Row::kBits / 8;
        L::store(to + d * kPanel, Row::load(row, slot, slots, pairs + 2 * d));
      }
    }
  }

  template <typename Row>
  void widen_values(float* panels, int filled) const {
    const int head_dim = form_.head_dim;
    const int runs = form_.value_runs();
    const std::byte* values = keys_ + form_.key_bytes();
    alignas(64) float pairs[2 * kMaxFastHeadDim / kValueScaleRun];
    for (int slot = 0; slot < filled; ++slot) {
      if constexpr (Row::kBits < 16) {
        widen_pairs<L>(values + form_.value_code_bytes() + std::ptrdiff_t{slot} * runs * 4, runs,
                       pairs);
      }
      const std::byte* row = values + std::ptrdiff_t{slot} * head_dim * Row::kBits / 8;
      float* to = panels + std::ptrdiff_t{first_slot_ + slot} * kPanel;
      int d = 0;
      for (; d + L::kWidth <= head_dim; d += L::kWidth) {
        L::store(to + d / kPanel * kPanel * kAttentionTileSlots + d % kPanel,
                 Row::load(row, d, head_dim, pairs + d / kValueScaleRun * 2));
      }
      if (d < head_dim) {
        widen_tail<Row>(row, d, pairs, to + d / kPanel * kPanel * kAttentionTileSlots + d % kPanel);
      }
    }
  }

  /// The last elements of a value row that fill no vector.
  template <typename Row>
  void widen_tail(const std::byte* row, int d, const float* pairs, float* to) const {
    const int head_dim = form_.head_dim;
    if constexpr (Row::kBits >= 16) {
      std::byte tail[L::kWidth * sizeof(float)] = {};
      std::memcpy(tail, row + d * Row::kBits / 8,
                  static_cast<std::size_t>((head_dim - d) * Row::kBits / 8));
      L::store(to, Row::load(tail, 0, L::kWidth, nullptr));
    } else {
      std::fill_n(to, L::kWidth, 0.0f);
      for (int i = 0; d + i < head_dim; ++i) {
        const FourBitPlace place = Row::kBits == 4
                                       ? four_bit_place(d + i, head_dim)
                                       : FourBitPlace{static_cast<std::size_t>(d + i), 0};
        const int code =
            (std::to_integer<int>(row[place.byte]) >> place.shift) & ((1 << Row::kBits) - 1);
        const float* pair = pairs + (d + i) / kValueScaleRun * 2;
        to[i] = __builtin_fmaf(static_cast<float>(code), pair[0], pair[1]);
      }
    }
  }

  const KvPageLayout& form_;
  const std::byte* keys_;
  int first_slot_;
};

}  // namespace
}  // namespace memdecay
