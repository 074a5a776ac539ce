// AttentionTile: the pages of one softmax tile and which of their slots a query sees.
//
// Included inside a target region.
#pragma once

namespace memdecay {
namespace {

inline constexpr int kMaxFastHeadDim = 256;
inline constexpr int kMaxTilePages = kAttentionTileSlots / 16;

/// Pages of a tile that a row sees, bit by bit.
using PageMask = unsigned;

/// Slots [begin, end) of a page.
struct SlotRange {
  int begin = 0;
  int end = 0;
};

/// The item's geometry in every form: where its head lies in a page, and how large its parts are.
struct PageForms {
  static constexpr int kCount = 5;
  KvPageLayout layout[kCount];
  std::size_t head_offset[kCount];
  int key_bytes[kCount];
  int value_bytes[kCount];
  int key_code_bytes[kCount];  ///< where the scales begin
  int value_code_bytes[kCount];

  explicit PageForms(const AttentionArgs& args) {
    for (int f = 0; f < kCount; ++f) {
      layout[f] = args.layout->in(static_cast<KvFormat>(f));
      head_offset[f] = layout[f].head_offset(args.layer, args.kv_head);
      key_bytes[f] = static_cast<int>(layout[f].key_bytes());
      value_bytes[f] = static_cast<int>(layout[f].value_bytes());
      key_code_bytes[f] = static_cast<int>(layout[f].key_code_bytes());
      value_code_bytes[f] = static_cast<int>(layout[f].value_code_bytes());
    }
  }
  static int index(KvFormat format) { return static_cast<int>(format); }
  const std::byte* head(const KvPageRef& page) const {
    return page.base + head_offset[index(page.format)];
  }
};

struct AttentionTile {
  int pages = 0;       ///< pages of a complete tile
  int page_slots = 0;  ///< slots of a page
  int first_page = 0;  ///< index in AttentionArgs::pages of page 0; may be negative
  const std::byte* keys[kMaxTilePages] = {};  ///< absent pages repeat a present one
  const std::byte* values[kMaxTilePages] = {};
  KvFormat format[kMaxTilePages] = {};  ///< of the page whose keys stand there
  Position first_position[kMaxTilePages] = {};
  int filled[kMaxTilePages] = {};                  ///< 0 where absent
  bool complete = true;                            ///< every slot of every page is filled
  bool one_form = true;                            ///< all pages are of format[0]
  const std::byte* next_keys[kMaxTilePages] = {};  ///< of the next tile, else of this one
  int next_key_bytes = 0;                          ///< of the largest of them

  /// Cuts the tile that holds pages[index], and moves index to the next one.
  static AttentionTile take(const AttentionArgs& args, const PageForms& forms, int& index) {
    AttentionTile tile;
    tile.page_slots = args.layout->page_tokens;
    tile.pages = kAttentionTileSlots / tile.page_slots;
    const int offset = (args.first_page_number + index) & (tile.pages - 1);  // a power of two
    tile.first_page = index - offset;
    MEMDECAY_ROLLED
    for (int p = 0; p < tile.pages; ++p) {
      const int page = tile.first_page + p;
      const bool present = p >= offset && page < args.page_count;
      const KvPageRef& from = args.pages[present ? page : index];
      const int form = PageForms::index(from.format);
      tile.keys[p] = forms.head(from);
      tile.values[p] = tile.keys[p] + forms.key_bytes[form];
      tile.format[p] = from.format;
      tile.first_position[p] = present ? from.first_position : 0;
      tile.filled[p] = present ? from.filled : 0;
      tile.complete = tile.complete && tile.filled[p] == tile.page_slots;
      tile.one_form = tile.one_form && from.format == tile.format[0];
    }
    index = tile.first_page + tile.pages;
    MEMDECAY_ROLLED
    for (int p = 0; p < tile.pages; ++p) {
      tile.next_keys[p] = tile.keys[p];
      if (index + p >= args.page_count) continue;
      const KvPageRef& next = args.pages[index + p];
      tile.next_keys[p] = forms.head(next);
      tile.next_key_bytes =
          std::max(tile.next_key_bytes, forms.key_bytes[PageForms::index(next.format)]);
    }
    return tile;
  }

  /// Asks for this tile's fp16 values, a line of each page in turn: so many at each of the
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
