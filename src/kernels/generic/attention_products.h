// The two products of attention, q times K and weights times V, as register tiles.
//
// Both are row-major outer products: rows of query rows (broadcast) times vectors of slots (of V:
// of dimensions). Each result is one chain of fused multiply-adds, over dimensions in order for
// scores, over slots in order for values, so tile shapes never change a bit. Operands come straight
// from fp16 pages (few query rows, as in decode) or from *panels*: a tile widened once to fp32,
// [panel][row][2 vectors], when many query rows share it.
// Included inside a target region.
#pragma once

#include "kernels/generic/attention_tile.h"

namespace memdecay {
namespace {

/// Floats from one query row to the next in the packed q; an odd number of cache lines.
inline constexpr int kQueryStride = 272;
inline constexpr int kMaxFastHeadDim = 256;

template <typename L, int kRows, int kVectors>
struct RegisterTile {
  typename L::Floats at[std::size_t{kRows}][std::size_t{kVectors}];

  MEMDECAY_INLINE void clear() {
    MEMDECAY_UNROLL
    for (int r = 0; r < kRows; ++r) {
      MEMDECAY_UNROLL
      for (int v = 0; v < kVectors; ++v) at[r][v] = L::zero();
    }
  }

  template <int kStride>
  MEMDECAY_INLINE void store(float* to) const {
    MEMDECAY_UNROLL
    for (int r = 0; r < kRows; ++r) {
      MEMDECAY_UNROLL
      for (int v = 0; v < kVectors; ++v) L::store(to + r * kStride + v * L::kWidth, at[r][v]);
    }
  }

  /// at[r][v] += a[r] * load(v), rows of a kStride floats apart. Whichever operand is shorter is
  /// held in registers.
  template <int kStride, typename Load>
  MEMDECAY_INLINE void add_product(const float* a, const Load& load) {
    if constexpr (kRows <= kVectors) {
      typename L::Floats factor[std::size_t{kRows}];
      MEMDECAY_UNROLL
      for (int r = 0; r < kRows; ++r) factor[r] = L::set(a[r * kStride]);
      MEMDECAY_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const typename L::Floats b = load(v);
        MEMDECAY_UNROLL
        for (int r = 0; r < kRows; ++r) at[r][v] = L::fma(factor[r], b, at[r][v]);
      }
    } else {
      typename L::Floats b[std::size_t{kVectors}];
      MEMDECAY_UNROLL
      for (int v = 0; v < kVectors; ++v) b[v] = load(v);
      MEMDECAY_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const typename L::Floats factor = L::set(a[r * kStride]);
        MEMDECAY_UNROLL
        for (int v = 0; v < kVectors; ++v) at[r][v] = L::fma(factor, b[v], at[r][v]);
      }
    }
  }
};

/// Scores of kRows query rows against kVectors vectors of slots from `first_slot` of a tile of fp16
/// pages.
template <typename L, int kRows, int kVectors, int kPageSlots>
MEMDECAY_NOINLINE void score_pages(const AttentionTile& tile, int first_slot, int head_dim,
                                   const float* q, float* scores) {
  constexpr int kSlots = kVectors * L::kWidth;
  constexpr int kPages = kSlots > kPageSlots ? kSlots / kPageSlots : 1;
  const std::uint16_t* keys[std::size_t{kPages}];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPages; ++p) {
    keys[p] = reinterpret_cast<const std::uint16_t*>(tile.keys[first_slot / kPageSlots + p]) +
              first_slot % kPageSlots;
  }
  RegisterTile<L, kRows, kVectors> sums;
  sums.clear();
  for (int d = 0; d < head_dim; ++d) {
    tile.template prefetch_values<kPageSlots, kSlots>(first_slot / kSlots * head_dim + d, head_dim);
    sums.template add_product<kQueryStride>(q + d, [&](int v) {
      return L::load_half(keys[v * L::kWidth / kPageSlots] + d * kPageSlots +
                          v * L::kWidth % kPageSlots);
    });
  }
  sums.template store<kAttentionTileSlots>(scores + first_slot);
}

/// The same from one panel of keys, [head_dim][2 vectors].
template <typename L, int kRows>
MEMDECAY_NOINLINE void score_panel(const float* panel, int head_dim, const float* q,
                                   float* scores) {
  RegisterTile<L, kRows, 2> sums;
  sums.clear();
  for (int d = 0; d < head_dim; ++d) {
    const float* row = panel + d * 2 * L::kWidth;
    sums.template add_product<kQueryStride>(q + d,
                                            [&](int v) { return L::load(row + v * L::kWidth); });
  }
  sums.template store<kAttentionTileSlots>(scores);
}

/// What the value product reads and writes, besides the values.
struct ValueProduct {
  const float* weights = nullptr;  ///< [rows][kAttentionTileSlots]
  const float* decay = nullptr;    ///< [rows]: factor of what out holds
  float* out = nullptr;
  std::ptrdiff_t out_stride = 0;
  const SlotRange* visible = nullptr;  ///< per page
  int page_begin = 0, page_end = 0;    ///< pages of the tile to read
  int prefetch_bytes = 0;              ///< of each page of the next tile, per slot of this one
};

template <typename L, int kRows, int kVectors>
MEMDECAY_INLINE void load_decayed(RegisterTile<L, kRows, kVectors>& sums,
                                  const ValueProduct& product, int column) {
  MEMDECAY_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const typename L::Floats decay = L::set(product.decay[r]);
    const float* out = product.out + r * product.out_stride + column;
    MEMDECAY_UNROLL
    for (int v = 0; v < kVectors; ++v) sums.at[r][v] = L::mul(L::load(out + v * L::kWidth), decay);
  }
}

template <typename L, int kRows, int kVectors>
MEMDECAY_INLINE void store_values(const RegisterTile<L, kRows, kVectors>& sums,
                                  const ValueProduct& product, int column) {
  MEMDECAY_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float* out = product.out + r * product.out_stride + column;
    MEMDECAY_UNROLL
    for (int v = 0; v < kVectors; ++v) L::store(out + v * L::kWidth, sums.at[r][v]);
  }
}

/// out = decay * out + weights * V for the dimensions of kVectors vectors from `column`, V read
/// from fp16 pages.
template <typename L, int kRows, int kVectors, int kPageSlots>
MEMDECAY_NOINLINE void add_values_of_pages(const AttentionTile& tile, const ValueProduct& product,
                                           int head_dim, int column) {
  constexpr int kPages = kAttentionTileSlots / kPageSlots;
  RegisterTile<L, kRows, kVectors> sums;
  load_decayed(sums, product, column);
  const int prefetch_bytes = column == 0 ? product.prefetch_bytes : 0;
  for (int p = product.page_begin; p < product.page_end; ++p) {
    const SlotRange range = product.visible[p];
    const std::uint16_t* values = reinterpret_cast<const std::uint16_t*>(tile.keys[p]) +
                                  (kPageSlots + range.begin) * head_dim + column;
    const float* weights = product.weights + p * kPageSlots;
    for (int slot = range.begin; slot < range.end; ++slot, values += head_dim) {
      tile.template prefetch_next<kPages>(p * kPageSlots + slot, prefetch_bytes);
      sums.template add_product<kAttentionTileSlots>(
          weights + slot, [&](int v) { return L::load_half(values + v * L::kWidth); });
    }
  }
  store_values(sums, product, column);
}

/// The same from one panel of values, [kAttentionTileSlots][2 vectors].
template <typename L, int kRows, int kVectors>
MEMDECAY_NOINLINE void add_values_of_panel(const AttentionTile& tile, const ValueProduct& product,
                                           const float* panel, int column) {
  RegisterTile<L, kRows, kVectors> sums;
  load_decayed(sums, product, column);
  for (int p = product.page_begin; p < product.page_end; ++p) {
    const SlotRange range = product.visible[p];
    const int first = p * tile.page_slots;
    for (int slot = first + range.begin; slot < first + range.end; ++slot) {
      const float* row = panel + slot * 2 * L::kWidth;
      sums.template add_product<kAttentionTileSlots>(
          product.weights + slot, [&](int v) { return L::load(row + v * L::kWidth); });
    }
  }
  store_values(sums, product, column);
}

}  // namespace
}  // namespace memdecay
