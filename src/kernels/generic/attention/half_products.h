// The two products of attention over fp16 pages as they lie, for few query rows, as in decode: each
// number is converted in the inner loop. Included inside a target region.
#pragma once

#include "kernels/generic/attention/register_tile.h"

namespace memdecay {
namespace {

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

/// The same for a page size that is known at run time.
template <typename L, int kRows>
MEMDECAY_INLINE void score_halves(const AttentionTile& tile, int first_slot, int head_dim,
                                  const float* q, float* scores) {
  constexpr int kVectors = L::slot_vectors(kRows);
  if (tile.page_slots == 16) {
    score_pages<L, kRows, kVectors, 16>(tile, first_slot, head_dim, q, scores);
  } else if (tile.page_slots == 32) {
    score_pages<L, kRows, kVectors, 32>(tile, first_slot, head_dim, q, scores);
  } else {
    score_pages<L, kRows, kVectors, 64>(tile, first_slot, head_dim, q, scores);
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

/// Vectors of one value row that a register tile of kRows query rows spans.
template <typename L, int kRows>
inline constexpr int kColumnVectors = kRows <= 3   ? 4
                                      : kRows <= 6 ? L::kMaxRows / 3
                                                   : 2;

/// All dimensions from `column` on, as many at once as registers allow, then the rest.
template <typename L, int kRows, int kVectors = kColumnVectors<L, kRows>>
void add_halves(const AttentionTile& tile, const ValueProduct& product, int head_dim,
                int column = 0) {
  for (; column + kVectors * L::kWidth <= head_dim; column += kVectors * L::kWidth) {
    if (tile.page_slots == 16) {
      add_values_of_pages<L, kRows, kVectors, 16>(tile, product, head_dim, column);
    } else if (tile.page_slots == 32) {
      add_values_of_pages<L, kRows, kVectors, 32>(tile, product, head_dim, column);
    } else {
      add_values_of_pages<L, kRows, kVectors, 64>(tile, product, head_dim, column);
    }
  }
  if constexpr (kVectors > 1) add_halves<L, kRows, kVectors / 2>(tile, product, head_dim, column);
}

}  // namespace
}  // namespace memdecay
