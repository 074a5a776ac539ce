// Online softmax of one tile, in powers of two (Milakov and Gimelshein 2018).
//
// Sums have one order, whatever the page size, the width of the vectors and the number of rows.
// Included inside a target region.
#pragma once

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

/// Adds up a tile: 16 lanes each over the eight runs, then the lanes; for 8 lanes in two halves.
template <typename L>
MEMDECAY_INLINE float sum_tile(const float* weights) {
  constexpr int kParts = 16 / L::kWidth;
  typename L::Floats sum[std::size_t{kParts}];
  MEMDECAY_UNROLL
  for (int part = 0; part < kParts; ++part) {
    typename L::Floats run[kSixteens];
    MEMDECAY_UNROLL
    for (int i = 0; i < kSixteens; ++i) run[i] = L::load(weights + 16 * i + part * L::kWidth);
    sum[part] = L::add(L::add(L::add(run[0], run[1]), L::add(run[2], run[3])),
                       L::add(L::add(run[4], run[5]), L::add(run[6], run[7])));
  }
  const __m256 eight = L::fold(sum[0], sum[kParts - 1]);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/// The running state of the query rows of a block, and what one tile did to it.
struct BlockSoftmax {
  alignas(64) float max[16];  ///< before the tile, then after it
  alignas(64) float sum[16];
  alignas(64) float decay[16];  ///< 2^(max before - max after)
  alignas(64) float tile[16];   ///< the tile's maximum, then its sum
  alignas(64) float peak[16];   ///< the tile's largest weight
};

template <typename L>
MEMDECAY_INLINE float tile_max(const float* scores) {
  typename L::Floats max[4];
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) max[i] = L::load(scores + i * L::kWidth);
  MEMDECAY_UNROLL
  for (int i = 4; i < kAttentionTileSlots / L::kWidth; ++i) {
    max[i % 4] = L::max(max[i % 4], L::load(scores + i * L::kWidth));
  }
  return L::max_lane(L::max(L::max(max[0], max[1]), L::max(max[2], max[3])));
}

/// Turns scores [rows][kAttentionTileSlots] into weights 2^(score - max) in place. Calls
/// after_row() once a row.
template <typename L, typename AfterRow>
void softmax_tile(float* scores, int rows, BlockSoftmax& state, const AfterRow& after_row) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  for (int r = 0; r < rows; ++r) state.tile[r] = tile_max<L>(scores + r * kAttentionTileSlots);
  alignas(64) float base[16];
  for (int r = 0; r < 16; r += L::kWidth) {
    const typename L::Floats before = L::load(state.max + r);
    const typename L::Floats tile = L::load(state.tile + r);
    const typename L::Floats after = L::max(before, tile);
    // A row that has seen nothing yet has weights 2^(-inf - 0) = 0.
    const typename L::Floats origin = L::replace_equal(after, after, kMinusInfinity, L::zero());
    L::store(base + r, origin);
    L::store(state.max + r, after);
    L::store(state.decay + r, exp2_nonpositive<L>(L::sub(before, origin)));
    L::store(state.peak + r, exp2_nonpositive<L>(L::sub(tile, origin)));
  }
  for (int r = 0; r < rows; ++r) {
    float* row = scores + r * kAttentionTileSlots;
    const typename L::Floats origin = L::set(base[r]);
    MEMDECAY_UNROLL
    for (int i = 0; i < kAttentionTileSlots; i += L::kWidth) {
      L::store(row + i, exp2_nonpositive<L>(L::sub(L::load(row + i), origin)));
    }
    state.tile[r] = sum_tile<L>(row);
    after_row();
  }
  for (int r = 0; r < 16; r += L::kWidth) {
    L::store(state.sum + r,
             L::fma(L::load(state.sum + r), L::load(state.decay + r), L::load(state.tile + r)));
  }
}

}  // namespace
}  // namespace memdecay
