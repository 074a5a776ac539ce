// Attention of one item: tiles one after another, blocks of query rows within a tile.
//
// Tiles of fp16 pages are read as they lie by few query rows (up to two blocks: decode). More rows
// share a tile that is widened once into panels in scratch, as are fp32 pages, fp16 pages that
// stand beside quantized ones, and everything where heads have an odd size: the same bits.
// Quantized pages are read as they lie, by integer products, however many rows there are; see
// attention_factors.h. Included inside a target region.
#pragma once

#include "kernels/generic/attention_codes.h"
#include "kernels/generic/attention_factors.h"
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
  float* units = nullptr;     ///< the same, each row's largest number kMostFactor
  float* largest = nullptr;   ///< [query rows]: the largest |q| of each
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
    softmax = reinterpret_cast<BlockSoftmax*>(take(sizeof(BlockSoftmax)));
    scores = floats(std::size_t{16} * kAttentionTileSlots);
    q = floats(rows * kQueryStride);
    units = floats(rows * kQueryStride);
    largest = floats(rows);
    tile_max = floats(std::size_t{kMaxItemTiles} * rows + L::kWidth);
    k_panels = floats(std::size_t{kAttentionTileSlots} * static_cast<std::size_t>(head_dim));
    v_panels = floats(std::size_t{kAttentionTileSlots} * padded(head_dim));
    out = floats(rows * padded(head_dim));
    coded = CodedTile<L>(floats, layout);
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
        scratch_(args.scratch, *args.layout, query_rows_) {
    const bool whole_vectors = layout_.head_dim % L::kWidth == 0;
    reads_halves_ = blocks_ <= 2 && whole_vectors;
    // The same heads for every width of vectors.
    reads_codes_ = layout_.head_dim % 16 == 0;
    out_ = whole_vectors ? args.out : scratch_.out;
    out_stride_ = whole_vectors ? layout_.head_dim
                                : static_cast<std::ptrdiff_t>(scratch_.padded(layout_.head_dim));
  }

  void run() {
    ask_for_first_keys();
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

  /// Of the quantized pages that come first: no tile before them asks for theirs.
  void ask_for_first_keys() const {
    const int pages = std::min(args_.page_count, kAttentionTileSlots / layout_.page_tokens);
    int bytes = 0;
    for (int p = 0; p < pages; ++p) {
      const KvFormat format = args_.pages[p].format;
      if (is_quantized(format)) bytes = std::max(bytes, forms_.key_bytes[PageForms::index(format)]);
    }
    for (int at = 0; at < bytes; at += 64) {
      for (int p = 0; p < pages; ++p) {
        _mm_prefetch(reinterpret_cast<const char*>(forms_.head(args_.pages[p]) + at), _MM_HINT_T0);
      }
    }
  }

  void begin() {
    for (int row = 0; row < args_.rows; ++row) {
      for (int head = 0; head < args_.group; ++head) {
        const std::ptrdiff_t r = static_cast<std::ptrdiff_t>(row) * args_.group + head;
        std::memcpy(scratch_.q + r * kQueryStride,
                    args_.q + row * args_.q_stride + head * layout_.head_dim,
                    static_cast<std::size_t>(layout_.head_dim) * sizeof(float));
        std::fill_n(scratch_.q + r * kQueryStride + layout_.head_dim,
                    kQueryStride - kMaxFastHeadDim, 0.0f);
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
    kHalves,  ///< all pages are fp16, as they lie
    kPanels,  ///< all pages are widened
    kCodes,   ///< some pages are codes, as they lie; others are widened
  };

  Path path_of(const AttentionTile& tile) {
    bool halves = reads_halves_;
    bool codes = false;
    for (int p = 0; p < tile.pages; ++p) {
      halves = halves && tile.format[p] == KvFormat::kF16;
      is_coded_[p] = reads_codes_ && is_quantized(tile.format[p]);
      codes = codes || is_coded_[p];
    }
    return halves ? Path::kHalves : codes ? Path::kCodes : Path::kPanels;
  }

  void attend_tile(const AttentionTile& tile, int tile_number) {
    bool first = true;
    lines_ = {};
    for (int number = 0; number < blocks_; ++number) {
      const Block block = cut_block(tile, number);
      if (!block.any) continue;
      if (first) {
        path_ = path_of(tile);
        if (path_ != Path::kHalves) widen_tile(tile);
        if (path_ == Path::kCodes) read_key_codes(tile, block);
        value_codes_read_ = false;
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
    softmax_tile<L>(scratch_.scores, kRows, state, [&] { lines_.step(kSoftmaxSteps); });
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
      add_forms<kRows>(tile, block, product, state);
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
    const bool panels = path_ != Path::kHalves;
    const int step = (panels ? 2 : kVectors) * L::kWidth;
    for (int slot = 0; slot < kAttentionTileSlots; slot += step) {
      if (path_ == Path::kCodes && all_coded(tile, slot, step)) continue;
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
    if (path_ == Path::kCodes) score_codes<kRows>(tile, block, q);
  }

  /// Steps of LineQueue: reading a page's scales, a row of softmax.
  static constexpr int kReadSteps = 3;
  static constexpr int kSoftmaxSteps = 4;

  /// Blocks of columns of one step of a product of codes.
  template <int kRows>
  static constexpr int kBlocks = 4 * kRows <= L::kMostSums ? 2 : 1;

  template <int kRows>
  void score_codes(const AttentionTile& tile, const Block& block, const float* q) {
    CodedTile<L>& coded = scratch_.coded;
    const int span = std::min(2 * L::kWidth, tile.page_slots);
    coded.make_key_factors(tile.pages, is_coded_, kRows, q,
                           scratch_.units + block.first * kQueryStride,
                           scratch_.largest + block.first, kQueryStride, lines_);
    CodeProduct product;
    product.factor_stride = coded.key_factor_stride();
    product.word_stride = 4 * tile.page_slots;
    product.out_stride = kAttentionTileSlots;
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const int bits = key_bits(tile.format[p]);
      if (bits != product.bits) multiply_all<kRows>(product);
      product.bits = bits;
      product.words_of_depth = code_words(bits, layout_.head_dim);
      for (int slot = 0; slot < tile.page_slots; slot += span) {
        const int at = p * tile.page_slots + slot;
        if (block.visible[p].begin >= slot + span || block.visible[p].end <= slot) {
          fill_scores(kRows, at, span);
          continue;
        }
        const int b = product.blocks++;
        product.words[b][0] = tile.keys[p] + 4 * slot;
        product.factors[b] = coded.key_factors(p);
        product.steps[b] = coded.key_steps(p);
        product.bases[b] = coded.key_bases(p);
        product.out[b] = scratch_.scores + at;
        product.first_vector_only[b] = span <= L::kWidth;
        if (product.blocks == kBlocks<kRows>) multiply_all<kRows>(product);
      }
    }
    multiply_all<kRows>(product);
  }

  /// Takes the product's blocks, which are of one kind, and leaves none.
  template <int kRows>
  void multiply_all(CodeProduct& product) {
    if (product.blocks == 0) return;
    const bool bytes = product.bits == 8;
    if (product.blocks == kBlocks<kRows>) {
      bytes ? multiply_codes<L, 8, kRows, kBlocks<kRows>>(product, lines_)
            : multiply_codes<L, 4, kRows, kBlocks<kRows>>(product, lines_);
    } else {
      bytes ? multiply_codes<L, 8, kRows, 1>(product, lines_)
            : multiply_codes<L, 4, kRows, 1>(product, lines_);
    }
    product.blocks = 0;
  }

  /// Columns of one step of a product of codes for so many rows.
  static int span_of(int rows) { return (4 * rows <= L::kMostSums ? 4 : 2) * L::kWidth; }

  /// From here to the softmax, memory is asked for the tile's values.
  void ask_for_values(const AttentionTile& tile, const Block& block) {
    int bytes = 0;
    for (int p = 0; p < tile.pages && block.first == 0; ++p) {
      bytes = std::max(bytes, forms_.value_bytes[PageForms::index(tile.format[p])]);
    }
    const int words = kAttentionTileSlots / span_of(block.rows) *
                      code_words(key_bits(tile.format[0]), layout_.head_dim);
    ask_for(tile.values, tile, bytes,
            words + tile.pages * (kReadSteps + block.rows) + block.rows * kSoftmaxSteps);
  }

  /// From here to the tile's end, for the next tile's keys.
  void ask_for_next_keys(const AttentionTile& tile, int rows, int bytes) {
    const int span = span_of(rows);
    const int words = tile.pages * ((layout_.head_dim + span - 1) / span) *
                      code_words(value_bits(tile.format[0]), tile.page_slots);
    ask_for(tile.next_keys, tile, bytes,
            words + tile.pages * kReadSteps + layout_.value_runs() * rows);
  }

  /// The first bytes of pages, spread over steps of work.
  void ask_for(const std::byte* const* pages, const AttentionTile& tile, int bytes, int steps) {
    lines_ = {};
    lines_.pages = pages;
    while ((1 << lines_.pages_shift) < tile.pages) ++lines_.pages_shift;
    lines_.end = (bytes + 63) / 64 * tile.pages;
    lines_.spread_over(steps);
  }

  bool all_coded(const AttentionTile& tile, int slot, int count) const {
    for (int p = slot / tile.page_slots; p * tile.page_slots < slot + count; ++p) {
      if (!is_coded_[p]) return false;
    }
    return true;
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

  /// Runs of pages whose values have as many bits.
  template <int kRows>
  void add_forms(const AttentionTile& tile, const Block& block, ValueProduct product,
                 const BlockSoftmax& state) {
    CodedTile<L>& coded = scratch_.coded;
    ask_for_next_keys(tile, kRows, product.prefetch_bytes > 0 ? tile.next_key_bytes : 0);
    if (!value_codes_read_) read_value_codes(tile);
    value_codes_read_ = true;
    typename CodedTile<L>::PageMask seen[kRows];
    find_seen_pages(tile, block, seen);
    for (int p = 0; p < tile.pages; p = product.page_end) {
      product.page_begin = p;
      product.page_end = p + 1;
      const auto kind = [&](int page) {
        return is_coded_[page] ? value_bits(tile.format[page]) : 0;
      };
      while (product.page_end < tile.pages && kind(product.page_end) == kind(p)) ++product.page_end;
      if (!is_coded_[p]) {
        add_panels<kRows>(tile, product);
        product.decay = kNoDecay;
        continue;
      }
      coded.make_value_factors(p, product.page_end, kRows, product.weights, state.peak, seen,
                               lines_);
      coded.add_minima(kRows, product.decay, product.out, product.out_stride);
      product.decay = kNoDecay;
      add_codes<kRows>(tile, product);
    }
  }

  void find_seen_pages(const AttentionTile& tile, const Block& block,
                       typename CodedTile<L>::PageMask* seen) const {
    if (tile.all_visible(block.low, args_.window) && tile.all_visible(block.high, args_.window)) {
      std::fill_n(seen, block.rows, (1U << tile.pages) - 1);
      return;
    }
    for (int r = 0; r < block.rows; ++r) {
      const Position position = args_.positions[(block.first + r) / args_.group];
      seen[r] = 0;
      for (int p = 0; p < tile.pages; ++p) {
        if (tile.visible(p, position, position, args_.window).end > 0) seen[r] |= 1U << p;
      }
    }
  }

  /// Pages of codes of as many bits; those that nobody sees are passed over.
  template <int kRows>
  void add_codes(const AttentionTile& tile, const ValueProduct& values) {
    const CodedTile<L>& coded = scratch_.coded;
    int begin = values.page_begin, end = values.page_end;
    while (begin < end && values.visible[begin].end == 0) ++begin;
    while (begin < end && values.visible[end - 1].end == 0) --end;
    if (begin == end) return;
    CodeProduct product;
    product.bits = value_bits(tile.format[begin]);
    product.pages = end - begin;
    product.words_of_depth = code_words(product.bits, tile.page_slots);
    product.word_stride = 4 * layout_.head_dim;
    product.factor_stride = kAttentionTileSlots;
    product.out_stride = values.out_stride;
    for (int column = 0; column < layout_.head_dim; column += 2 * L::kWidth) {
      const int run = column / kValueScaleRun;
      const int b = product.blocks++;
      for (int p = begin; p < end; ++p) product.words[b][p - begin] = tile.values[p] + 4 * column;
      product.factors[b] = coded.value_factors(run, begin * tile.page_slots);
      product.steps[b] = coded.value_steps(run);
      product.out[b] = values.out + column;
      product.first_vector_only[b] = column + L::kWidth >= layout_.head_dim;
      if (product.blocks == kBlocks<kRows>) multiply_all<kRows>(product);
    }
    multiply_all<kRows>(product);
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
      if (tile.filled[p] == 0 || is_coded_[p]) continue;
      const PageWidening<L> page(forms_.layout[PageForms::index(tile.format[p])], tile.keys[p],
                                 p * tile.page_slots);
      page.keys_to(scratch_.k_panels);
      page.values_to(scratch_.v_panels, tile.filled[p]);
    }
  }

  // ---- codes

  void read_key_codes(const AttentionTile& tile, const Block& block) {
    ask_for_values(tile, block);
    if (!units_made_) make_units();
    units_made_ = true;
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const KvPageLayout& form = forms_.layout[PageForms::index(tile.format[p])];
      scratch_.coded.read_keys(p, tile.keys[p] + form.key_code_bytes());
      lines_.step(kReadSteps);
    }
  }

  void read_value_codes(const AttentionTile& tile) {
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const KvPageLayout& form = forms_.layout[PageForms::index(tile.format[p])];
      scratch_.coded.read_values(p, tile.keys[p] + form.key_bytes() + form.value_code_bytes(),
                                 tile.filled[p]);
      lines_.step(kReadSteps);
    }
  }

  void make_units() {
    for (int r = 0; r < query_rows_; ++r) {
      const float* q = scratch_.q + std::ptrdiff_t{r} * kQueryStride;
      float* units = scratch_.units + std::ptrdiff_t{r} * kQueryStride;
      typename L::Floats most = L::zero();
      for (int d = 0; d < layout_.head_dim; d += L::kWidth) {
        const typename L::Floats x = L::load(q + d);
        most = L::max(L::max(x, L::sub(L::zero(), x)), most);
      }
      const float largest = L::max_lane(most);
      const bool counts = largest > kLeastFactor;
      scratch_.largest[r] = counts ? largest : 0.0f;
      const typename L::Floats factor = L::set(counts ? kMostFactor / largest : 0.0f);
      for (int d = 0; d < layout_.head_dim + 16; d += L::kWidth) {
        L::store(units + d, L::mul(L::load(q + d), factor));
      }
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
  bool reads_halves_ = false;
  bool reads_codes_ = false;
  Path path_ = Path::kPanels;
  bool is_coded_[kMaxTilePages] = {};  ///< read as codes
  LineQueue lines_;
  bool units_made_ = false;
  bool value_codes_read_ = false;
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
  return AttentionScratch<L>(nullptr, layout, rows * group).bytes;
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
