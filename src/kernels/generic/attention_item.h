// Attention of one item: tiles one after another, blocks of query rows within a tile.
//
// Few query rows (up to two blocks: decode) read pages as they lie: tiles of fp16 pages, tiles of
// one quantized form, and tiles of mixed forms page by page. More rows share a tile that is widened
// once into panels in scratch, as do fp32 pages, quantized pages of 16 slots and odd head sizes.
// All give the same bits; see attention_products.h and attention_codes.h. Included inside a target
// region.
#pragma once

#include "kernels/generic/attention_codes.h"
#include "kernels/generic/attention_products.h"
#include "kernels/generic/attention_tile.h"
#include "kernels/generic/attention_widen.h"
#include "kernels/generic/softmax_tile.h"

namespace memdecay {
namespace {

/// Most tiles that a segment touches: its pages need not start at a tile's border.
inline constexpr int kMaxItemTiles = kAttentionSegmentSlots / kAttentionTileSlots + 1;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

inline constexpr float kNoDecay[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/// Where things lie in the caller's scratch.
template <typename L>
struct AttentionScratch {
  static constexpr std::size_t kPanelWidth = 2 * L::kWidth;

  BlockSoftmax* softmax = nullptr;
  float* scores = nullptr;    ///< [16][kAttentionTileSlots]
  float* q = nullptr;         ///< [query rows][kQueryStride]
  float* tile_max = nullptr;  ///< [kMaxItemTiles][query rows]: running maximum after each tile
  float* k_panels = nullptr;  ///< [kAttentionTileSlots / panel width][head_dim][panel width]
  float* v_panels = nullptr;  ///< [head_dim / panel width][kAttentionTileSlots][panel width]
  /// In tiles that are not widened, the places of the panels hold pairs of scale and minimum.
  float* key_pairs() const { return k_panels; }    ///< [pages][head_dim][2]
  float* value_pairs() const { return v_panels; }  ///< [kAttentionTileSlots][runs][2]
  float* out = nullptr;  ///< [query rows][padded head_dim], where args.out will not do
  std::size_t bytes = 0;

  static constexpr std::size_t padded(int head_dim) {
    return round_up(static_cast<std::size_t>(head_dim), kPanelWidth);
  }

  AttentionScratch(std::byte* base, int head_dim, int query_rows) {
    const std::size_t rows = static_cast<std::size_t>(query_rows);
    const auto take = [&](std::size_t size) {
      std::byte* start = base == nullptr ? nullptr : base + bytes;
      bytes += round_up(size, 64);
      return start;
    };
    const auto floats = [&](std::size_t count) {
      return reinterpret_cast<float*>(take(count * sizeof(float)));
    };
    softmax = reinterpret_cast<BlockSoftmax*>(take(sizeof(BlockSoftmax)));
    scores = floats(std::size_t{16} * kAttentionTileSlots);
    q = floats(rows * kQueryStride);
    tile_max = floats(std::size_t{kMaxItemTiles} * rows + L::kWidth);
    k_panels = floats(std::size_t{kAttentionTileSlots} * static_cast<std::size_t>(head_dim));
    v_panels = floats(std::size_t{kAttentionTileSlots} * padded(head_dim));
    out = floats(rows * padded(head_dim));
  }
};

template <typename L>
class AttentionItem {
 public:
  explicit AttentionItem(const AttentionArgs& args)
      : args_(args),
        layout_(*args.layout),
        forms_(args),
        query_rows_(args.rows * args.group),
        blocks_((query_rows_ + L::kMaxRows - 1) / L::kMaxRows),
        scratch_(args.scratch, args.layout->head_dim, query_rows_) {
    const bool whole_vectors = layout_.head_dim % L::kWidth == 0;
    always_panels_ = blocks_ > 2 || !whole_vectors;
    out_ = whole_vectors ? args.out : scratch_.out;
    out_stride_ = whole_vectors ? layout_.head_dim
                                : static_cast<std::ptrdiff_t>(scratch_.padded(layout_.head_dim));
  }

  void run() {
    begin();
    int tile_number = 0;
    for (int page = 0; page < args_.page_count; ++tile_number) {
      const int first = page;
      const AttentionTile tile = AttentionTile::take(args_, forms_, page);
      attend_tile(tile, tile_number);
      if (args_.page_sum == nullptr) continue;
      for (int p = first; p < std::min(page, args_.page_count); ++p) tile_of_page_[p] = tile_number;
    }
    finish();
  }

 private:
  /// Rows [first, first + rows) of the query rows, and the slots that any of them sees.
  struct Block {
    int first = 0;
    int rows = 0;
    Position low = 0, high = 0;
    SlotRange visible[kMaxTilePages];
    bool any = false;
  };

  void begin() {
    for (int row = 0; row < args_.rows; ++row) {
      for (int head = 0; head < args_.group; ++head) {
        const std::ptrdiff_t r = static_cast<std::ptrdiff_t>(row) * args_.group + head;
        std::memcpy(scratch_.q + r * kQueryStride,
                    args_.q + row * args_.q_stride + head * layout_.head_dim,
                    static_cast<std::size_t>(layout_.head_dim) * sizeof(float));
      }
    }
    std::fill_n(args_.max, query_rows_, -std::numeric_limits<float>::infinity());
    std::fill_n(args_.sum, query_rows_, 0.0f);
    std::fill_n(out_, query_rows_ * out_stride_, 0.0f);
    if (args_.page_sum == nullptr) return;
    std::fill_n(args_.page_sum, static_cast<std::ptrdiff_t>(args_.page_count) * query_rows_, 0.0f);
    std::fill_n(scratch_.tile_max, kMaxItemTiles * query_rows_ + L::kWidth,
                -std::numeric_limits<float>::infinity());
  }

  Block cut_block(const AttentionTile& tile, int number) const {
    // Sizes differ by one at most.
    const int size = query_rows_ / blocks_;
    const int larger = query_rows_ % blocks_;
    Block block;
    block.first = number * size + std::min(number, larger);
    block.rows = size + (number < larger ? 1 : 0);
    block.low = args_.positions[block.first / args_.group];
    block.high = args_.positions[(block.first + block.rows - 1) / args_.group];
    for (int p = 0; p < tile.pages; ++p) {
      block.visible[p] = tile.visible(p, block.low, block.high, args_.window);
      block.any = block.any || block.visible[p].end > 0;
    }
    return block;
  }

  /// How a tile is read.
  enum class Path {
    kPanels,  ///< widened first
    kHalves,  ///< all pages fp16
    kCodes,   ///< some pages quantized
  };

  Path path_of(const AttentionTile& tile) const {
    if (always_panels_) return Path::kPanels;
    bool halves = true;
    for (int p = 0; p < tile.pages; ++p) {
      if (tile.format[p] == KvFormat::kF32) return Path::kPanels;
      halves = halves && tile.format[p] == KvFormat::kF16;
    }
    if (halves) return Path::kHalves;
    return tile.page_slots >= kChunk && layout_.head_dim % 16 == 0 ? Path::kCodes : Path::kPanels;
  }

  void attend_tile(const AttentionTile& tile, int tile_number) {
    bool first = true;
    for (int number = 0; number < blocks_; ++number) {
      const Block block = cut_block(tile, number);
      if (!block.any) continue;
      if (first) {
        path_ = path_of(tile);
        if (path_ == Path::kPanels) widen_tile(tile);
        if (path_ == Path::kCodes) widen_key_pairs(tile);
        value_pairs_wide_ = false;
        first = false;
      }
      attend_block(tile, block, tile_number, std::make_integer_sequence<int, L::kMaxRows>());
    }
  }

  template <int... kIndex>
  void attend_block(const AttentionTile& tile, const Block& block, int tile_number,
                    std::integer_sequence<int, kIndex...>) {
    const bool done =
        ((block.rows == kIndex + 1 && (attend_rows<kIndex + 1>(tile, block, tile_number), true)) ||
         ...);
    static_cast<void>(done);
  }

  template <int kRows>
  void attend_rows(const AttentionTile& tile, const Block& block, int tile_number) {
    score_block<kRows>(tile, block);
    mask_block(tile, block);
    BlockSoftmax& state = *scratch_.softmax;
    load_state(block, state);
    softmax_tile<L>(scratch_.scores, kRows, state);
    store_state(tile, block, tile_number, state);
    ValueProduct product;
    product.weights = scratch_.scores;
    product.decay = state.decay;
    product.out = out_ + block.first * out_stride_;
    product.out_stride = out_stride_;
    product.visible = block.visible;
    product.page_end = tile.pages;
    if (block.first == 0) {
      product.prefetch_bytes =
          (tile.next_key_bytes + kAttentionTileSlots - 1) / kAttentionTileSlots;
    }
    if (path_ == Path::kPanels) {
      add_panels<kRows>(tile, product);
    } else if (path_ == Path::kHalves) {
      add_pages<kRows, kColumnVectors<kRows>>(tile, product, 0);
    } else {
      add_forms<kRows>(tile, product);
    }
  }

  /// Vectors of one value row that a register tile of kRows query rows spans.
  template <int kRows>
  static constexpr int kColumnVectors = kRows <= 3   ? 4
                                        : kRows <= 6 ? L::kMaxRows / 3
                                                     : 2;

  // ---- scores

  template <int kRows>
  void score_block(const AttentionTile& tile, const Block& block) {
    const float* q = scratch_.q + block.first * kQueryStride;
    constexpr int kVectors = L::slot_vectors(kRows);
    if (path_ == Path::kCodes) return score_forms<kRows>(tile, block, q);
    const bool panels = path_ == Path::kPanels;
    const int step = (panels ? 2 : kVectors) * L::kWidth;
    for (int slot = 0; slot < kAttentionTileSlots; slot += step) {
      if (!any_visible(tile, block, slot, step)) {
        fill_scores(kRows, slot, step);
      } else if (panels) {
        score_panel<L, kRows>(scratch_.k_panels + slot * layout_.head_dim, layout_.head_dim, q,
                              scratch_.scores + slot);
      } else if (tile.page_slots == 16) {
        score_pages<L, kRows, kVectors, 16>(tile, slot, layout_.head_dim, q, scratch_.scores);
      } else if (tile.page_slots == 32) {
        score_pages<L, kRows, kVectors, 32>(tile, slot, layout_.head_dim, q, scratch_.scores);
      } else {
        score_pages<L, kRows, kVectors, 64>(tile, slot, layout_.head_dim, q, scratch_.scores);
      }
    }
  }

  template <int kRows>
  void score_forms(const AttentionTile& tile, const Block& block, const float* q) {
    constexpr int kVectors = L::slot_vectors(kRows);
    constexpr int kNarrow = std::min(kVectors, kChunk / L::kWidth);
    if (tile.uniform) {
      if (key_bits(tile.format[0]) == 8) {
        score_steps<ByteCodes<L>, kRows, kVectors>(tile, block, q, 0, tile.pages);
      } else {
        score_steps<NibbleCodes<L>, kRows, kVectors>(tile, block, q, 0, tile.pages);
      }
      return;
    }
    for (int p = 0; p < tile.pages; ++p) {
      switch (key_bits(tile.format[p])) {
        case 16:
          score_steps<HalfCodes<L>, kRows, kNarrow>(tile, block, q, p, p + 1);
          break;
        case 8:
          score_steps<ByteCodes<L>, kRows, kNarrow>(tile, block, q, p, p + 1);
          break;
        default:
          score_steps<NibbleCodes<L>, kRows, kNarrow>(tile, block, q, p, p + 1);
      }
    }
  }

  /// Pages [begin, end) of the tile, which are of one form.
  template <typename Codes, int kRows, int kVectors>
  void score_steps(const AttentionTile& tile, const Block& block, const float* q, int begin,
                   int end) {
    constexpr int kSpan = kVectors * L::kWidth;
    constexpr int kWhole = std::max(kSpan, kChunk);
    const int first_step = begin * tile.page_slots / kSpan;
    const int steps = end * tile.page_slots / kSpan - first_step;
    ValueLines lines = lines_of(tile, begin, end);
    const int all_lines = block.first == 0 ? lines.end : 0;
    CodedKeys keys;
    keys.row_bytes = tile.page_slots * Codes::kBits / 8;
    keys.lines = &lines;
    for (int i = 0; i < steps; ++i) {
      const int slot = (first_step + i) * kSpan;
      if (!any_visible(tile, block, slot / kWhole * kWhole, kWhole)) {
        fill_scores(kRows, slot, kSpan);
        continue;
      }
      const StepPlace place = place_of_step<L, Codes, kVectors>(first_step + i);
      for (int c = 0; c < kWhole / kChunk; ++c) {
        const int at = (place.chunk + c) * kChunk;
        const int page = at / tile.page_slots;
        keys.codes[c] = tile.keys[page] + at % tile.page_slots * Codes::kBits / 8 + place.byte;
        keys.pairs[c] = scratch_.key_pairs() + std::ptrdiff_t{page} * 2 * layout_.head_dim;
      }
      lines.begin = all_lines * i / steps;
      lines.end = all_lines * (i + 1) / steps;
      score_codes<L, Codes, kRows, kVectors>(keys, layout_.head_dim, q,
                                             scratch_.scores + place.element);
    }
  }

  /// The values of pages [begin, end), which are of one form.
  ValueLines lines_of(const AttentionTile& tile, int begin, int end) const {
    const int form = PageForms::index(tile.format[begin]);
    ValueLines lines;
    for (int p = begin; p < end; ++p)
      lines.values[p - begin] = tile.keys[p] + forms_.key_bytes[form];
    while ((1 << lines.pages_shift) < end - begin) ++lines.pages_shift;
    lines.end = (forms_.value_bytes[form] + 63) / 64 * (end - begin);
    return lines;
  }

  /// Whether some row of the block sees one of the slots [slot, slot + count) of the tile.
  static bool any_visible(const AttentionTile& tile, const Block& block, int slot, int count) {
    for (int p = slot / tile.page_slots; p * tile.page_slots < slot + count; ++p) {
      const int start = p * tile.page_slots;
      if (start + block.visible[p].begin < slot + count && start + block.visible[p].end > slot &&
          block.visible[p].end > 0) {
        return true;
      }
    }
    return false;
  }

  void fill_scores(int rows, int slot, int count) {
    for (int r = 0; r < rows; ++r) {
      std::fill_n(scratch_.scores + r * kAttentionTileSlots + slot, count,
                  -std::numeric_limits<float>::infinity());
    }
  }

  /// Minus infinity wherever a row does not see a slot.
  void mask_block(const AttentionTile& tile, const Block& block) {
    if (tile.all_visible(block.low, args_.window) && tile.all_visible(block.high, args_.window)) {
      return;
    }
    for (int r = 0; r < block.rows; ++r) {
      const Position position = args_.positions[(block.first + r) / args_.group];
      if (!tile.all_visible(position, args_.window)) {
        mask_row(tile, position, scratch_.scores + r * kAttentionTileSlots);
      }
    }
  }

  void mask_row(const AttentionTile& tile, Position position, float* scores) {
    const typename L::Floats hidden = L::set(-std::numeric_limits<float>::infinity());
    for (int p = 0; p < tile.pages; ++p) {
      const SlotRange range = tile.visible(p, position, position, args_.window);
      float* page = scores + p * tile.page_slots;
      for (int i = 0; i < tile.page_slots; i += L::kWidth) {
        L::store(page + i,
                 L::keep_range(L::load(page + i), range.begin - i, range.end - i, hidden));
      }
    }
  }

  // ---- softmax state

  void load_state(const Block& block, BlockSoftmax& state) const {
    for (int r = 0; r < 16; ++r) {
      const bool used = r < block.rows;
      state.max[r] = used ? args_.max[block.first + r] : 0.0f;
      state.sum[r] = used ? args_.sum[block.first + r] : 0.0f;
      state.tile[r] = 0.0f;
    }
  }

  void store_state(const AttentionTile& tile, const Block& block, int tile_number,
                   const BlockSoftmax& state) {
    for (int r = 0; r < block.rows; ++r) {
      args_.max[block.first + r] = state.max[r];
      args_.sum[block.first + r] = state.sum[r];
    }
    if (args_.page_sum == nullptr) return;
    const int runs = tile.page_slots / 16;
    for (int r = 0; r < block.rows; ++r) {
      scratch_.tile_max[tile_number * query_rows_ + block.first + r] = state.max[r];
      alignas(64) float sixteens[kSixteens];
      _mm256_store_ps(sixteens, sum_sixteens<L>(scratch_.scores + r * kAttentionTileSlots));
      for (int p = 0; p < tile.pages; ++p) {
        const int page = tile.first_page + p;
        if (page < 0 || page >= args_.page_count) continue;
        const float* s = sixteens + p * runs;
        args_.page_sum[page * query_rows_ + block.first + r] = runs == 1 ? s[0]
                                                               : runs == 2
                                                                   ? s[0] + s[1]
                                                                   : (s[0] + s[1]) + (s[2] + s[3]);
      }
    }
  }

  // ---- values

  /// The columns from `column` on, as many at once as registers allow, then the rest.
  template <int kRows, int kVectors>
  void add_pages(const AttentionTile& tile, const ValueProduct& product, int column) {
    const int head_dim = layout_.head_dim;
    for (; column + kVectors * L::kWidth <= head_dim; column += kVectors * L::kWidth) {
      if (tile.page_slots == 16) {
        add_values_of_pages<L, kRows, kVectors, 16>(tile, product, head_dim, column);
      } else if (tile.page_slots == 32) {
        add_values_of_pages<L, kRows, kVectors, 32>(tile, product, head_dim, column);
      } else {
        add_values_of_pages<L, kRows, kVectors, 64>(tile, product, head_dim, column);
      }
    }
    if constexpr (kVectors > 1) add_pages<kRows, kVectors / 2>(tile, product, column);
  }

  /// Runs of pages of one form, one after the other.
  template <int kRows>
  void add_forms(const AttentionTile& tile, ValueProduct product) {
    constexpr int kVectors = kColumnVectors<kRows>;
    if (!value_pairs_wide_) widen_value_pairs(tile);
    value_pairs_wide_ = true;
    for (int p = 0; p < tile.pages; p = product.page_end) {
      product.page_begin = p;
      product.page_end = p + 1;
      const KvFormat format = tile.format[p];
      while (product.page_end < tile.pages && tile.format[product.page_end] == format) {
        ++product.page_end;
      }
      const int bits = value_bits(format);
      if (bits == 16) {
        add_pages<kRows, kVectors>(tile, product, 0);
      } else if (bits == 8) {
        add_codes<ByteCodes<L>, kRows, kVectors>(tile, product, layout_.head_dim, 0);
      } else {
        const int whole = layout_.head_dim / kChunk * kChunk;
        add_codes<NibbleCodes<L>, kRows, kVectors>(tile, product, whole, 0);
        if (whole < layout_.head_dim) add_short_run<kRows>(tile, product, whole);
      }
      product.decay = kNoDecay;
    }
  }

  CodedValues coded_values(const AttentionTile& tile, const ValueProduct& product) const {
    const KvPageLayout& form = forms_.layout[PageForms::index(tile.format[product.page_begin])];
    CodedValues coded;
    coded.offset = static_cast<std::ptrdiff_t>(form.key_bytes());
    coded.row_bytes = form.head_dim * value_bits(form.format) / 8;
    coded.runs = form.value_runs();
    coded.pairs = scratch_.value_pairs();
    return coded;
  }

  /// Columns [column, head_dim), as many at once as registers allow, then the rest.
  template <typename Codes, int kRows, int kVectors>
  void add_codes(const AttentionTile& tile, const ValueProduct& product, int head_dim, int column) {
    constexpr int kSpan = kVectors * L::kWidth;
    const CodedValues coded = coded_values(tile, product);
    for (; column + kSpan <= head_dim; column += kSpan) {
      add_values_of_codes<L, Codes, kRows, kVectors>(
          tile, product, coded, place_of_step<L, Codes, kVectors>(column / kSpan));
    }
    constexpr int kLeast = Codes::kBits == 4 ? 2 : 16 / L::kWidth;
    if constexpr (kVectors > kLeast) {
      if (column < head_dim) add_codes<Codes, kRows, kVectors / 2>(tile, product, head_dim, column);
    }
  }

  /// The last 16 columns, in a row of codes that ends with a short run.
  template <int kRows>
  void add_short_run(const AttentionTile& tile, const ValueProduct& product, int column) {
    const StepPlace place{column / kChunk, 0, column};
    add_values_of_codes<L, ShortNibbleCodes<L>, kRows, 16 / L::kWidth>(
        tile, product, coded_values(tile, product), place);
  }

  template <int kRows>
  void add_panels(const AttentionTile& tile, const ValueProduct& product) {
    const int padded = static_cast<int>(
        round_up(static_cast<std::size_t>(layout_.head_dim), std::size_t{L::kWidth}));
    for (int column = 0; column < padded; column += 2 * L::kWidth) {
      const float* panel = scratch_.v_panels + column * kAttentionTileSlots;
      if (column + L::kWidth < padded) {
        add_values_of_panel<L, kRows, 2>(tile, product, panel, column);
      } else {
        add_values_of_panel<L, kRows, 1>(tile, product, panel, column);
      }
    }
  }

  // ---- widening

  void widen_tile(const AttentionTile& tile) {
    for (int p = 0; p < tile.pages; ++p) {
      if (tile.filled[p] == 0) continue;
      const PageWidening<L> page(forms_.layout[PageForms::index(tile.format[p])], tile.keys[p],
                                 p * tile.page_slots);
      page.keys_to(scratch_.k_panels);
      page.values_to(scratch_.v_panels, tile.filled[p]);
    }
  }

  void widen_key_pairs(const AttentionTile& tile) {
    for (int p = 0; p < tile.pages; ++p) {
      const KvPageLayout& form = forms_.layout[PageForms::index(tile.format[p])];
      if (!is_quantized(form.format)) continue;
      widen_pairs<L>(tile.keys[p] + form.key_code_bytes(), form.head_dim,
                     scratch_.key_pairs() + std::ptrdiff_t{p} * 2 * form.head_dim);
    }
  }

  void widen_value_pairs(const AttentionTile& tile) {
    for (int p = 0; p < tile.pages; ++p) {
      const KvPageLayout& form = forms_.layout[PageForms::index(tile.format[p])];
      if (!is_quantized(form.format)) continue;
      const int runs = form.value_runs();
      widen_pairs<L>(tile.keys[p] + form.key_bytes() + form.value_code_bytes(),
                     tile.filled[p] * runs,
                     scratch_.value_pairs() + std::ptrdiff_t{p} * tile.page_slots * 2 * runs);
    }
  }

  // ---- the end

  void finish() {
    // Adding 0 turns -0 into 0: the only trace that skipping an invisible slot could leave.
    if (out_ == args_.out) {
      const std::ptrdiff_t n = query_rows_ * out_stride_;
      for (std::ptrdiff_t i = 0; i < n; i += L::kWidth) {
        L::store(out_ + i, L::add(L::load(out_ + i), L::zero()));
      }
    } else {
      for (int r = 0; r < query_rows_; ++r) {
        for (int d = 0; d < layout_.head_dim; ++d) {
          args_.out[r * layout_.head_dim + d] = out_[r * out_stride_ + d] + 0.0f;
        }
      }
    }
    if (args_.page_sum != nullptr) rescale_page_sums();
  }

  /// Page sums were taken relative to the maximum of their time.
  void rescale_page_sums() {
    for (int r = 0; r < query_rows_; r += L::kWidth) {
      const int rows = std::min(L::kWidth, query_rows_ - r);
      alignas(64) float now[L::kWidth] = {};
      std::copy_n(args_.max + r, rows, now);
      alignas(64) float factor[L::kWidth];
      for (int page = 0; page < args_.page_count; ++page) {
        const int tile = tile_of_page_[page];
        if (page == 0 || tile != tile_of_page_[page - 1]) {
          const float* then = scratch_.tile_max + tile * query_rows_ + r;
          L::store(factor, exp2_nonpositive<L>(L::sub(L::load(then), L::load(now))));
        }
        float* sums = args_.page_sum + static_cast<std::ptrdiff_t>(page) * query_rows_ + r;
        for (int i = 0; i < rows; ++i) {
          // Where no slot was seen the factor may be 2^(-inf + inf).
          if (sums[i] != 0.0f) sums[i] *= factor[i];
        }
      }
    }
  }

  const AttentionArgs& args_;
  const KvPageLayout& layout_;
  const PageForms forms_;
  int query_rows_;
  int blocks_;
  AttentionScratch<L> scratch_;
  bool always_panels_ = false;
  Path path_ = Path::kPanels;
  bool value_pairs_wide_ = false;
  float* out_ = nullptr;
  std::ptrdiff_t out_stride_ = 0;
  int tile_of_page_[kAttentionSegmentSlots / 16 + 1] = {};
};

/// Head sizes above kMaxFastHeadDim are rare enough for the scalar kernel.
template <typename L>
std::size_t attention_scratch_bytes(const KvPageLayout& layout, int rows, int group) {
  if (layout.head_dim > kMaxFastHeadDim) {
    return scalar_kernels().attention_scratch_bytes(layout, rows, group);
  }
  return AttentionScratch<L>(nullptr, layout.head_dim, rows * group).bytes;
}

template <typename L>
void attention(const AttentionArgs& args) {
  MEMDECAY_CHECK(args.page_count * args.layout->page_tokens <= kAttentionSegmentSlots);
  if (args.layout->head_dim > kMaxFastHeadDim) {
    scalar_kernels().attention(args);
    return;
  }
  AttentionItem<L>(args).run();
}

}  // namespace
}  // namespace memdecay
