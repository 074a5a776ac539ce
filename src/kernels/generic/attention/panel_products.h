// The two products of attention over *panels*: a tile widened once to fp32, [panel][row][2
// vectors], when many query rows share it or its pages cannot be read as they lie. The same chains
// as over fp16 pages, so the same bits. Included inside a target region.
#pragma once

#include "kernels/generic/attention/register_tile.h"

namespace memdecay {
namespace {

/// Scores of kRows query rows against one panel of keys, [head_dim][2 vectors].
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

/// out = decay * out + weights * V for the dimensions of kVectors vectors from `column`, V read
/// from one panel of values, [kAttentionTileSlots][2 vectors].
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

/// All dimensions, from panels in a row.
template <typename L, int kRows>
void add_panels(const AttentionTile& tile, const ValueProduct& product, const float* panels,
                int head_dim) {
  for (int column = 0; column < head_dim; column += 2 * L::kWidth) {
    const float* panel = panels + column * kAttentionTileSlots;
    if (column + L::kWidth < head_dim) {
      add_values_of_panel<L, kRows, 2>(tile, product, panel, column);
    } else {
      add_values_of_panel<L, kRows, 1>(tile, product, panel, column);
    }
  }
}

}  // namespace
}  // namespace memdecay
