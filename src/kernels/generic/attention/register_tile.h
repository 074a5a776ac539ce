// RegisterTile: the sums of an outer product that stay in registers, and what the two float
// products of attention share.
//
// q times K and weights times V are both row-major outer products: rows of query rows (broadcast)
// times vectors of slots (of V: of dimensions). Each result is one chain of fused multiply-adds,
// over dimensions in order for scores, over slots in order for values, so tile shapes never change
// a bit. Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_tile.h"

namespace memdecay {
namespace {

/// Floats from one query row to the next in the packed q; an odd number of cache lines.
inline constexpr int kQueryStride = 272;

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

}  // namespace
}  // namespace memdecay
