// PageSums: each page's part of the sums of an item's rows, AttentionArgs::page_sum.
//
// A tile's parts are written relative to the running maximum of that time, which is remembered; the
// end makes all of them relative to the final maximum. Does nothing where nobody asked for them.
// Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_scratch.h"
#include "kernels/generic/attention/query_block.h"

namespace memdecay {
namespace {

template <typename L>
class PageSums {
 public:
  /// `tile_max` is AttentionScratch::tile_max.
  PageSums(const AttentionArgs& args, float* tile_max)
      : args_(args), query_rows_(args.rows * args.group), tile_max_(tile_max) {}

  void begin() {
    if (args_.page_sum == nullptr) return;
    std::fill_n(args_.page_sum, static_cast<std::ptrdiff_t>(args_.page_count) * query_rows_, 0.0f);
    std::fill_n(tile_max_, kMaxItemTiles * query_rows_ + L::kWidth,
                -std::numeric_limits<float>::infinity());
  }

  void begin_tile(const AttentionTile& tile) {
    if (args_.page_sum == nullptr) return;
    ++tile_;
    const int end = std::min(tile.first_page + tile.pages, args_.page_count);
    for (int page = std::max(tile.first_page, 0); page < end; ++page) tile_of_page_[page] = tile_;
  }

  /// From the block's weights [rows][kAttentionTileSlots].
  void add_block(const AttentionTile& tile, const QueryBlock& block, const float* weights,
                 const BlockSoftmax& state) {
    if (args_.page_sum == nullptr) return;
    const int begin = std::max(0, -tile.first_page);
    const int end = std::min(tile.pages, args_.page_count - tile.first_page);
    const int runs = tile.page_slots / 16;
    for (int r = 0; r < block.rows; ++r) {
      const int row = block.first + r;
      tile_max_[tile_ * query_rows_ + row] = state.max[r];
      alignas(64) float sixteens[kSixteens];
      _mm256_store_ps(sixteens, sum_sixteens<L>(weights + r * kAttentionTileSlots));
      float* to = args_.page_sum + (tile.first_page + begin) * query_rows_ + row;
      for (int p = begin; p < end; ++p, to += query_rows_) *to = sum_of_page(sixteens, p, runs);
    }
  }

  void finish() {
    if (args_.page_sum == nullptr) return;
    for (int r = 0; r < query_rows_; r += L::kWidth) rescale_rows(r);
  }

 private:
  /// Page p's `runs` sums of 16 slots, added in a fixed order.
  static float sum_of_page(const float* sixteens, int p, int runs) {
    const float* s = sixteens + p * runs;
    if (runs == 1) return s[0];
    return runs == 2 ? s[0] + s[1] : (s[0] + s[1]) + (s[2] + s[3]);
  }

  /// As many rows from `first` as vectors have lanes.
  void rescale_rows(int first) {
    const int rows = std::min(L::kWidth, query_rows_ - first);
    alignas(64) float now[L::kWidth] = {};
    std::copy_n(args_.max + first, rows, now);
    alignas(64) float factor[L::kWidth];
    for (int page = 0; page < args_.page_count; ++page) {
      const int tile = tile_of_page_[page];
      if (page == 0 || tile != tile_of_page_[page - 1]) {
        const float* then = tile_max_ + tile * query_rows_ + first;
        L::store(factor, exp2_nonpositive<L>(L::sub(L::load(then), L::load(now))));
      }
      float* sums = args_.page_sum + static_cast<std::ptrdiff_t>(page) * query_rows_ + first;
      MEMDECAY_ROLLED
      for (int i = 0; i < rows; ++i) {
        // Where no slot was seen the factor may be 2^(-inf + inf).
        if (sums[i] != 0.0f) sums[i] *= factor[i];
      }
    }
  }

  const AttentionArgs& args_;
  int query_rows_;
  float* tile_max_;  ///< [kMaxItemTiles][query rows]: running maximum after each tile
  int tile_ = -1;    ///< number of the current one
  int tile_of_page_[kAttentionSegmentSlots / 16 + 1] = {};
};

}  // namespace
}  // namespace memdecay
