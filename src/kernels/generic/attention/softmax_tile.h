// Online softmax of one tile, in powers of two (Milakov and Gimelshein 2018).
//
// Sums have one order, whatever the page size, the width of the vectors and the number of rows.
// Included inside a target region.
#pragma once

#include "kernels/generic/attention/lane_tree.h"
#include "kernels/generic/exp2.h"

namespace memdecay {
namespace {

inline constexpr int kSixteens = kAttentionTileSlots / 16;

/// Adds up each run of 16 slots: a tree of fixed shape, eight runs at once.
template <typename L>
MEMDECAY_INLINE __m256 sum_sixteens(const float* weights) {
  __m256 run[kSixteens];
  MEMDECAY_UNROLL
  for (int i = 0; i < kSixteens; ++i) {
    run[i] =
        _mm256_add_ps(_mm256_loadu_ps(weights + 16 * i), _mm256_loadu_ps(weights + 16 * i + 8));
  }
  __m256 pair[4];
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    pair[i] = _mm256_add_ps(_mm256_unpacklo_ps(run[2 * i], run[2 * i + 1]),
                            _mm256_unpackhi_ps(run[2 * i], run[2 * i + 1]));
  }
  __m256 four[2];
  MEMDECAY_UNROLL
  for (int i = 0; i < 2; ++i) {
    const __m256d a = _mm256_castps_pd(pair[2 * i]);
    const __m256d b = _mm256_castps_pd(pair[2 * i + 1]);
    four[i] = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                            _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
  }
  return _mm256_add_ps(_mm256_permute2f128_ps(four[0], four[1], 0x20),
                       _mm256_permute2f128_ps(four[0], four[1], 0x31));
}

/// The running state of the query rows of a block, and what one tile did to it.
struct BlockSoftmax {
  alignas(64) float max[16];  ///< before the tile, then after it
  alignas(64) float sum[16];
  alignas(64) float decay[16];  ///< 2^(max before - max after)
  alignas(64) float peak[16];   ///< the tile's largest weight

  /// No row has seen anything.
  void begin() {
    std::fill_n(max, 16, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, 16, 0.0f);
  }
};

/// Eight lanes of each row of a block, a vector of results on the way.
using RowLanes = float[16][8];

/// Joins the lanes of each row; where the vector has more lanes than there are rows, others repeat.
template <typename L, typename Join>
MEMDECAY_INLINE typename L::Floats join_rows(const RowLanes& lanes, int rows, const Join& join) {
  static_assert(L::kMaxRows <= L::kWidth);
  const auto eight = [&](int first) {
    __m256 each[8];
    MEMDECAY_UNROLL
    for (int i = 0; i < 8; ++i) each[i] = _mm256_load_ps(lanes[std::min(first + i, rows - 1)]);
    return join_lanes(each, join);
  };
  const __m256 first = eight(0);
  return L::join(first, L::kMaxRows > 8 && rows > 8 ? eight(8) : first);
}

/// The largest score of each row, where none is a NaN.
template <typename L>
MEMDECAY_INLINE typename L::Floats tile_maxima(const float* scores, int rows) {
  alignas(32) RowLanes lanes;
  for (int r = 0; r < rows; ++r) {
    const float* row = scores + r * kAttentionTileSlots;
    typename L::Floats max[4];
    MEMDECAY_UNROLL
    for (int i = 0; i < 4; ++i) max[i] = L::load(row + i * L::kWidth);
    MEMDECAY_UNROLL
    for (int i = 4; i < kAttentionTileSlots / L::kWidth; ++i) {
      max[i % 4] = L::max(max[i % 4], L::load(row + i * L::kWidth));
    }
    const typename L::Floats most = L::max(L::max(max[0], max[1]), L::max(max[2], max[3]));
    _mm256_store_ps(lanes[r], L::fold_max(most));
  }
  return join_rows<L>(lanes, rows, LargerLanes());
}

/// Turns a row of scores into weights 2^(score - origin), and adds them up: 16 lanes each over the
/// eight runs, then the halves.
template <typename L>
MEMDECAY_INLINE __m256 weigh_row(float* row, typename L::Floats origin) {
  constexpr int kParts = 16 / L::kWidth;
  typename L::Floats sum[std::size_t{kParts}];
  MEMDECAY_UNROLL
  for (int part = 0; part < kParts; ++part) {
    typename L::Floats run[kSixteens];
    MEMDECAY_UNROLL
    for (int i = 0; i < kSixteens; ++i) {
      float* at = row + 16 * i + part * L::kWidth;
      run[i] = exp2_nonpositive<L>(L::sub(L::load(at), origin));
      L::store(at, run[i]);
    }
    sum[part] = L::add(L::add(L::add(run[0], run[1]), L::add(run[2], run[3])),
                       L::add(L::add(run[4], run[5]), L::add(run[6], run[7])));
  }
  return L::fold(sum[0], sum[kParts - 1]);
}

/// Turns scores [rows][kAttentionTileSlots] into weights 2^(score - max) in place. Calls
/// after_row() once a row.
template <typename L, typename AfterRow>
void softmax_tile(float* scores, int rows, BlockSoftmax& state, const AfterRow& after_row) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const typename L::Floats tile = tile_maxima<L>(scores, rows);
  const typename L::Floats before = L::load(state.max);
  const typename L::Floats after = L::max(before, tile);
  // A row that has seen nothing yet has weights 2^(-inf - 0) = 0.
  const typename L::Floats origin = L::replace_equal(after, after, kMinusInfinity, L::zero());
  const typename L::Floats decay = exp2_nonpositive<L>(L::sub(before, origin));
  alignas(64) float base[L::kWidth];
  L::store(base, origin);
  L::store(state.max, after);
  L::store(state.decay, decay);
  L::store(state.peak, exp2_nonpositive<L>(L::sub(tile, origin)));
  alignas(32) RowLanes sums;
  for (int r = 0; r < rows; ++r) {
    _mm256_store_ps(sums[r], weigh_row<L>(scores + r * kAttentionTileSlots, L::set(base[r])));
    after_row();
  }
  L::store(state.sum, L::fma(L::load(state.sum), decay, join_rows<L>(sums, rows, AddedLanes())));
}

}  // namespace
}  // namespace memdecay
