// QueryBlock: neighbouring query rows of an item, as many as a register tile has rows, against one
// tile of pages; and what they see of it.
//
// Blocks of an item differ by one row at most. Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_tile.h"

namespace memdecay {
namespace {

/// Rows [first, first + rows) of the query rows, and the slots that any of them sees.
struct QueryBlock {
  int first = 0;
  int rows = 0;
  Position low = 0, high = 0;  ///< of the first row and of the last
  SlotRange visible[kMaxTilePages];
  bool any = false;  ///< whether any row sees anything

  /// The `number`th of `blocks` blocks.
  static QueryBlock cut(const AttentionArgs& args, const AttentionTile& tile, int number,
                        int blocks) {
    const int size = args.rows * args.group / blocks;
    const int larger = args.rows * args.group % blocks;
    QueryBlock block;
    block.first = number * size + std::min(number, larger);
    block.rows = size + (number < larger ? 1 : 0);
    block.low = block.position(args, 0);
    block.high = block.position(args, block.rows - 1);
    for (int p = 0; p < tile.pages; ++p) {
      block.visible[p] = tile.visible(p, block.low, block.high, args.window);
      block.any = block.any || block.visible[p].end > 0;
    }
    return block;
  }

  Position position(const AttentionArgs& args, int row) const {
    return args.positions[(first + row) / args.group];
  }

  /// Whether some row sees one of the slots [slot, slot + count) of the tile.
  bool sees_any(const AttentionTile& tile, int slot, int count) const {
    for (int p = slot / tile.page_slots; p * tile.page_slots < slot + count; ++p) {
      const int start = p * tile.page_slots;
      if (start + visible[p].begin < slot + count && start + visible[p].end > slot &&
          visible[p].end > 0) {
        return true;
      }
    }
    return false;
  }

  /// Whether every row sees every slot of the tile.
  bool sees_all(const AttentionTile& tile, int window) const {
    return tile.all_visible(low, window) && tile.all_visible(high, window);
  }

  /// The pages that each row sees.
  void find_seen_pages(const AttentionArgs& args, const AttentionTile& tile, PageMask* seen) const {
    if (sees_all(tile, args.window)) {
      std::fill_n(seen, rows, (1U << tile.pages) - 1);
      return;
    }
    for (int r = 0; r < rows; ++r) {
      const Position at = position(args, r);
      seen[r] = 0;
      for (int p = 0; p < tile.pages; ++p) {
        if (tile.visible(p, at, at, args.window).end > 0) seen[r] |= 1U << p;
      }
    }
  }
};

/// Minus infinity for the slots [slot, slot + count) of scores [rows][kAttentionTileSlots].
inline void hide_slots(float* scores, int rows, int slot, int count) {
  for (int r = 0; r < rows; ++r) {
    std::fill_n(scores + r * kAttentionTileSlots + slot, count,
                -std::numeric_limits<float>::infinity());
  }
}

template <typename L>
void mask_row(const AttentionTile& tile, Position position, int window, float* scores) {
  const typename L::Floats hidden = L::set(-std::numeric_limits<float>::infinity());
  for (int p = 0; p < tile.pages; ++p) {
    const SlotRange range = tile.visible(p, position, position, window);
    float* page = scores + p * tile.page_slots;
    for (int i = 0; i < tile.page_slots; i += L::kWidth) {
      L::store(page + i, L::keep_range(L::load(page + i), range.begin - i, range.end - i, hidden));
    }
  }
}

/// Minus infinity wherever a row does not see a slot.
template <typename L>
void mask_block(const AttentionArgs& args, const AttentionTile& tile, const QueryBlock& block,
                float* scores) {
  if (block.sees_all(tile, args.window)) return;
  for (int r = 0; r < block.rows; ++r) {
    const Position position = block.position(args, r);
    if (tile.all_visible(position, args.window)) continue;
    mask_row<L>(tile, position, args.window, scores + r * kAttentionTileSlots);
  }
}

}  // namespace
}  // namespace memdecay
