// AttentionScratch: where an item's intermediate results lie in the caller's scratch.
//
// Owns nothing. Made over a null pointer it counts bytes alone. Included inside a target region.
#pragma once

#include "kernels/generic/attention/coded_tile.h"
#include "kernels/generic/attention/register_tile.h"
#include "kernels/generic/attention/softmax_tile.h"

namespace memdecay {
namespace {

/// Most tiles that a segment touches: its pages need not start at a tile's border.
inline constexpr int kMaxItemTiles = kAttentionSegmentSlots / kAttentionTileSlots + 1;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

template <typename L>
struct AttentionScratch {
  static constexpr std::size_t kPanelWidth = 2 * L::kWidth;

  BlockSoftmax* softmax = nullptr;  ///< of each block of query rows
  float* scores = nullptr;          ///< [16][kAttentionTileSlots]
  float* q = nullptr;               ///< [query rows][kQueryStride]
  float* units = nullptr;           ///< the same, each row's largest number kMostFactor
  float* largest = nullptr;         ///< [query rows]: the largest |q| of each
  float* tile_max = nullptr;  ///< [kMaxItemTiles][query rows]: running maximum after each tile
  float* k_panels = nullptr;  ///< [kAttentionTileSlots / panel width][head_dim][panel width]
  float* v_panels = nullptr;  ///< [head_dim / panel width][kAttentionTileSlots][panel width]
  CodedTile<L> coded;
  float* out = nullptr;  ///< [query rows][padded head_dim], where args.out will not do
  std::size_t bytes = 0;

  static constexpr std::size_t padded(int head_dim) {
    return round_up(static_cast<std::size_t>(head_dim), kPanelWidth);
  }

  AttentionScratch(std::byte* base, const KvPageLayout& layout, int query_rows) {
    const int head_dim = layout.head_dim;
    const std::size_t rows = static_cast<std::size_t>(query_rows);
    const auto take = [&](std::size_t size) {
      std::byte* start = base == nullptr ? nullptr : base + bytes;
      bytes += round_up(size, 64);
      return start;
    };
    const auto floats = [&](std::size_t count) {
      return reinterpret_cast<float*>(take(count * sizeof(float)));
    };
    softmax = reinterpret_cast<BlockSoftmax*>(
        take(sizeof(BlockSoftmax) * ((rows + L::kMaxRows - 1) / L::kMaxRows)));
    scores = floats(std::size_t{16} * kAttentionTileSlots);
    q = floats(rows * kQueryStride);
    units = floats(rows * kQueryStride);
    largest = floats(rows + 16);
    tile_max = floats(std::size_t{kMaxItemTiles} * rows + L::kWidth);
    k_panels = floats(std::size_t{kAttentionTileSlots} * static_cast<std::size_t>(head_dim));
    v_panels = floats(std::size_t{kAttentionTileSlots} * padded(head_dim));
    out = floats(rows * padded(head_dim));
    coded = CodedTile<L>(floats, layout);
  }
};

}  // namespace
}  // namespace memdecay
