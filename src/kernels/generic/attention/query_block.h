// QueryBlock: neighbouring query rows of an item, as many as a register tile has rows, against one
// tile of pages; and what they see of it.
//
// Blocks of an item differ by one row at most. Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_tile.h"

namespace memdecay {
namespace {

/// Rows [first, first + count) of an item's query rows.
struct RowRange {
  int first, count;
};

/// The rows of the `number`th of `blocks` blocks.
inline RowRange block_rows(int query_rows, int number, int blocks) {
  if (blocks == 1) return {0, query_rows};
  const int size = query_rows / blocks;
  const int larger = query_rows % blocks;
  return {number * size + std::min(number, larger), size + (number < larger ? 1 : 0)};
}

/// Rows [first, first + rows) of the query rows, and the slots that any of them sees.
struct QueryBlock {
  int number = 0;
  int first = 0;
  int rows = 0;
  Position low = 0, high = 0;  ///< of the first row and of the last
  SlotRange visible[kMaxTilePages];
  bool any = false;       ///< whether any row sees anything
  bool sees_all = false;  ///< whether every row sees every slot of the tile

  /// The `number`th of `blocks` blocks.
  static QueryBlock cut(const AttentionArgs& args, const AttentionTile& tile, int number,
                        int blocks) {
    const RowRange range = block_rows(args.rows * args.group, number, blocks);
    QueryBlock block;
    block.number = number;
    block.first = range.first;
    block.rows = range.count;
    block.low = block.position(args, 0);
    block.high = block.position(args, block.rows - 1);
    block.sees_all =
        tile.all_visible(block.low, args.window) && tile.all_visible(block.high, args.window);
    block.any = block.sees_all;
    MEMDECAY_ROLLED
    for (int p = 0; p < tile.pages; ++p) {
      block.visible[p] = block.sees_all ? SlotRange{0, tile.page_slots}
                                        : tile.visible(p, block.low, block.high, args.window);
      block.any = block.any || block.visible[p].end > 0;
    }
    return block;
  }

  Position position(const AttentionArgs& args, int row) const {
    return args.positions[args.rows == 1 ? 0 : (first + row) / args.group];
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

  /// The pages that each row sees.
  void find_seen_pages(const AttentionArgs& args, const AttentionTile& tile, PageMask* seen) const {
    if (sees_all) {
      MEMDECAY_ROLLED
      for (int r = 0; r < rows; ++r) seen[r] = (1U << tile.pages) - 1;
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
  if (block.sees_all) return;
  for (int r = 0; r < block.rows; ++r) {
    const Position position = block.position(args, r);
    if (tile.all_visible(position, args.window)) continue;
    mask_row<L>(tile, position, args.window, scores + r * kAttentionTileSlots);
  }
}

}  // namespace
}  // namespace memdecay
