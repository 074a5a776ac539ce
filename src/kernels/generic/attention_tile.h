// AttentionTile: the pages of one softmax tile and which of their slots a query sees.
//
// Included inside a target region.
#pragma once

namespace memdecay {
namespace {

inline constexpr int kMaxTilePages = kAttentionTileSlots / 16;

/// Slots [begin, end) of a page.
struct SlotRange {
  int begin = 0;
  int end = 0;
};

struct AttentionTile {
  int pages = 0;       ///< pages of a complete tile
  int page_slots = 0;  ///< slots of a page
  int first_page = 0;  ///< index in AttentionArgs::pages of page 0; may be negative
  const std::byte* keys[kMaxTilePages] = {};  ///< absent pages repeat a present one
  Position first_position[kMaxTilePages] = {};
  int filled[kMaxTilePages] = {};                  ///< 0 where absent
  bool complete = true;                            ///< every slot of every page is filled
  const std::byte* next_keys[kMaxTilePages] = {};  ///< of the next tile, else of this one

  /// Cuts the tile that holds pages[index], and moves index to the next one.
  static AttentionTile take(const AttentionArgs& args, int& index) {
    AttentionTile tile;
    tile.page_slots = args.layout->page_tokens;
    tile.pages = kAttentionTileSlots / tile.page_slots;
    const int offset = (args.first_page_number + index) % tile.pages;
    tile.first_page = index - offset;
    const std::byte* present = args.pages[index].base + args.head_offset;
    for (int p = 0; p < tile.pages; ++p) {
      tile.keys[p] = present;
      const int page = tile.first_page + p;
      if (p >= offset && page < args.page_count) {
        tile.keys[p] = args.pages[page].base + args.head_offset;
        tile.first_position[p] = args.pages[page].first_position;
        tile.filled[p] = args.pages[page].filled;
      }
      tile.complete = tile.complete && tile.filled[p] == tile.page_slots;
    }
    index = tile.first_page + tile.pages;
    for (int p = 0; p < tile.pages; ++p) {
      tile.next_keys[p] = index + p < args.page_count
                              ? args.pages[index + p].base + args.head_offset
                              : tile.keys[p];
    }
    return tile;
  }

  /// Asks for this tile's values, a line of each page in turn: so many at each of the
  /// head_dim * (tile slots / kStepSlots) steps of the score loops that all are asked for.
  template <int kPageSlots, int kStepSlots>
  MEMDECAY_INLINE void prefetch_values(int step, int head_dim) const {
    constexpr int kPages = kAttentionTileSlots / kPageSlots;
    constexpr int kLines = kStepSlots > 32 ? kStepSlots / 32 : 1;
    const int half_head_bytes = 2 * kPageSlots * head_dim;
    MEMDECAY_UNROLL
    for (int i = 0; i < kLines; ++i) {
      const int line = step * kStepSlots / 32 + i;
      _mm_prefetch(
          reinterpret_cast<const char*>(keys[line % kPages] + half_head_bytes + line / kPages * 64),
          _MM_HINT_T0);
    }
  }

  /// Asks for the next tile's keys, a share of every page at each of this tile's slots: several
  /// streams at once are what memory serves best.
  template <int kPages>
  MEMDECAY_INLINE void prefetch_next(int slot, int share_bytes) const {
    const int offset = slot * share_bytes;
    if ((offset & 63) >= share_bytes) return;  // this line was asked for already
    for (int line = offset; line < offset + share_bytes; line += 64) {
      MEMDECAY_UNROLL
      for (int p = 0; p < kPages; ++p) {
        _mm_prefetch(reinterpret_cast<const char*>(next_keys[p] + line), _MM_HINT_T0);
      }
    }
  }

  /// Slots of page p that some query between positions low and high sees.
  SlotRange visible(int p, Position low, Position high, int window) const {
    SlotRange range{0, std::min(filled[p], high - first_position[p] + 1)};
    if (window != 0) range.begin = std::max(0, low - window + 1 - first_position[p]);
    return range.begin < range.end ? range : SlotRange{};
  }

  /// Whether every slot is visible to a query at this position.
  bool all_visible(Position position, int window) const {
    return complete && first_position[pages - 1] + page_slots - 1 <= position &&
           (window == 0 || first_position[0] > position - window);
  }
};

}  // namespace
}  // namespace memdecay
