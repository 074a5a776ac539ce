// AttentionItem: attention of one item, the order of work.
//
// Tiles come one after another, blocks of query rows within a tile. A tile is read in one of three
// ways. fp16 pages are read as they lie by few query rows (up to two blocks: decode). More rows
// share a tile that is widened once into panels in scratch, as are fp32 pages, fp16 pages that
// stand beside quantized ones, and everything where heads have an odd size: the same bits.
// Quantized pages are read as they lie, by integer products, however many rows there are:
// CodesPath. Lives for one call; owns nothing but its state. Included inside a target region.
#pragma once

#include "kernels/generic/attention/codes_path.h"
#include "kernels/generic/attention/half_products.h"
#include "kernels/generic/attention/page_sums.h"
#include "kernels/generic/attention/page_widening.h"
#include "kernels/generic/attention/panel_products.h"

namespace memdecay {
namespace {

inline constexpr float kNoDecay[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

template <typename L>
class AttentionItem {
 public:
  explicit AttentionItem(const AttentionArgs& args)
      : args_(args),
        layout_(*args.layout),
        forms_(args),
        query_rows_(args.rows * args.group),
        blocks_((query_rows_ + L::kMaxRows - 1) / L::kMaxRows),
        scratch_(args.scratch, *args.layout, query_rows_),
        codes_(args, forms_, scratch_),
        page_sums_(args, scratch_.tile_max) {
    const bool whole_vectors = layout_.head_dim % L::kWidth == 0;
    reads_halves_ = blocks_ <= 2 && whole_vectors;
    out_ = whole_vectors ? args.out : scratch_.out;
    out_stride_ = whole_vectors ? layout_.head_dim
                                : static_cast<std::ptrdiff_t>(scratch_.padded(layout_.head_dim));
  }

  void run() {
    codes_.ask_for_first_keys();
    begin();
    for (int page = 0; page < args_.page_count;) {
      const AttentionTile tile = AttentionTile::take(args_, forms_, page);
      page_sums_.begin_tile(tile);
      attend_tile(tile);
    }
    finish();
  }

 private:
  /// How a tile is read.
  enum class Path {
    kHalves,  ///< all pages are fp16, as they lie
    kPanels,  ///< all pages are widened
    kCodes,   ///< some pages are codes, as they lie; others are widened
  };

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
    for (int number = 0; number < blocks_; ++number) scratch_.softmax[number].begin();
    std::fill_n(out_, query_rows_ * out_stride_, 0.0f);
    page_sums_.begin();
  }

  void attend_tile(const AttentionTile& tile) {
    bool first = true;
    for (int number = 0; number < blocks_; ++number) {
      const QueryBlock block = QueryBlock::cut(args_, tile, number, blocks_);
      if (!block.any) continue;
      if (first) read_tile(tile, block);
      first = false;
      attend_block(tile, block, std::make_integer_sequence<int, L::kMaxRows>());
    }
  }

  /// What all blocks of the tile share; `block` is the first that sees something.
  void read_tile(const AttentionTile& tile, const QueryBlock& block) {
    const bool codes = codes_.take_tile(tile);
    const bool halves = reads_halves_ && tile.one_form && tile.format[0] == KvFormat::kF16;
    path_ = halves ? Path::kHalves : codes ? Path::kCodes : Path::kPanels;
    all_coded_ = codes && tile.one_form;
    if (!halves && !all_coded_) widen_tile(tile);
    if (path_ == Path::kCodes) codes_.read_keys(tile, block);
  }

  MEMDECAY_NOINLINE void widen_tile(const AttentionTile& tile) {
    for (int p = 0; p < tile.pages; ++p) {
      if (tile.filled[p] == 0 || codes_.is_coded(p)) continue;
      const PageWidening<L> page(forms_.layout[PageForms::index(tile.format[p])], tile.keys[p],
                                 p * tile.page_slots);
      page.keys_to(scratch_.k_panels);
      page.values_to(scratch_.v_panels, tile.filled[p]);
    }
  }

  template <int... kIndex>
  void attend_block(const AttentionTile& tile, const QueryBlock& block,
                    std::integer_sequence<int, kIndex...>) {
    const bool done =
        ((block.rows == kIndex + 1 && (attend_rows<kIndex + 1>(tile, block), true)) || ...);
    static_cast<void>(done);
  }

  template <int kRows>
  void attend_rows(const AttentionTile& tile, const QueryBlock& block) {
    score_block<kRows>(tile, block);
    if (path_ == Path::kCodes) codes_.read_values(tile, block);
    mask_block<L>(args_, tile, block, scratch_.scores);
    BlockSoftmax& state = scratch_.softmax[block.number];
    softmax_tile<L>(scratch_.scores, kRows, state,
                    [&] { codes_.lines().step(CodesPath<L>::kSoftmaxSteps); });
    page_sums_.add_block(tile, block, scratch_.scores, state);
    add_values<kRows>(tile, block, state);
  }

  template <int kRows>
  void score_block(const AttentionTile& tile, const QueryBlock& block) {
    if (!all_coded_) score_floats<kRows>(tile, block);
    if (path_ == Path::kCodes) codes_.template score<kRows>(tile, block);
  }

  /// Scores of the pages that are no codes.
  template <int kRows>
  void score_floats(const AttentionTile& tile, const QueryBlock& block) {
    const float* q = scratch_.q + block.first * kQueryStride;
    const bool halves = path_ == Path::kHalves;
    const int step = (halves ? L::slot_vectors(kRows) : 2) * L::kWidth;
    for (int slot = 0; slot < kAttentionTileSlots; slot += step) {
      if (path_ == Path::kCodes && codes_.all_coded(tile, slot, step)) continue;
      if (!block.sees_any(tile, slot, step)) {
        hide_slots(scratch_.scores, kRows, slot, step);
      } else if (halves) {
        score_halves<L, kRows>(tile, slot, layout_.head_dim, q, scratch_.scores);
      } else {
        score_panel<L, kRows>(scratch_.k_panels + slot * layout_.head_dim, layout_.head_dim, q,
                              scratch_.scores + slot);
      }
    }
  }

  template <int kRows>
  void add_values(const AttentionTile& tile, const QueryBlock& block, const BlockSoftmax& state) {
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
      add_panels<L, kRows>(tile, product, scratch_.v_panels, layout_.head_dim);
    } else if (path_ == Path::kHalves) {
      add_halves<L, kRows>(tile, product, layout_.head_dim);
    } else {
      add_mixed_values<kRows>(tile, block, product, state);
    }
  }

  /// Runs of pages with codes of as many bits, or with none.
  template <int kRows>
  void add_mixed_values(const AttentionTile& tile, const QueryBlock& block, ValueProduct product,
                        const BlockSoftmax& state) {
    codes_.begin_values(tile, block);
    for (int p = 0; p < tile.pages; p = product.page_end) {
      product.page_begin = p;
      product.page_end = codes_.run_end(tile, p);
      if (codes_.is_coded(p)) {
        codes_.template add_values<kRows>(tile, product, state);
      } else {
        add_panels<L, kRows>(tile, product, scratch_.v_panels, layout_.head_dim);
      }
      product.decay = kNoDecay;
    }
  }

  void store_states() {
    for (int number = 0; number < blocks_; ++number) {
      const RowRange rows = block_rows(query_rows_, number, blocks_);
      std::copy_n(scratch_.softmax[number].max, rows.count, args_.max + rows.first);
      std::copy_n(scratch_.softmax[number].sum, rows.count, args_.sum + rows.first);
    }
  }

  void finish() {
    store_states();
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
    page_sums_.finish();
  }

  const AttentionArgs& args_;
  const KvPageLayout& layout_;
  const PageForms forms_;
  int query_rows_;
  int blocks_;
  AttentionScratch<L> scratch_;
  CodesPath<L> codes_;
  PageSums<L> page_sums_;
  bool reads_halves_ = false;
  Path path_ = Path::kPanels;
  bool all_coded_ = false;  ///< the tile has nothing but codes
  float* out_ = nullptr;
  std::ptrdiff_t out_stride_ = 0;
};

}  // namespace
}  // namespace memdecay
