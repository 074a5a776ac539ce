// Many columns on AVX2: tiles over a panel that was unpacked once.
//
// The buffer holds codes below 64, or two planes of nibbles for byte codes: so products gather in
// 16 bits for kFlush groups before they are widened (byte codes widened one by one would cost half
// as much again). Offsets are applied as if all codes had an offset of 128: the widening multiplies
// by 2^kShift and the scales carry 2^-kShift, both exact. Included inside the avx2 region.
#pragma once

#include "kernels/avx2/lanes.h"
#include "kernels/generic/matmul/unpacked_panel.h"

namespace memdecay::avx2 {
namespace {

/// Holds x in a register at this point: keeps the compiler from starting so many products early
/// that the accumulators go to the stack.
MEMDECAY_INLINE void keep_in_register(__m256i& x) {
  asm volatile("" : "+x"(x));
}

/// Of 32 inputs per pass: the codes of a panel then take 8 KiB, 16 in two planes.
inline constexpr int kTileBlocks = 16;
using TilePanel = UnpackedPanel<kTileBlocks, 2>;

/// How a tile is shaped, so that 16 registers suffice. Types that agree share one.
template <int kCodeFlush, int kSubBlockCount, bool kWithMin, int kShiftBits>
struct Shape {
  static constexpr bool kPlanes = kCodeFlush == 1;  ///< two planes of nibbles
  static constexpr int kSubBlocks = kSubBlockCount;
  static constexpr int kGroups = 8 / kSubBlocks;
  static constexpr int kFlush = kPlanes ? 8 : std::min(kCodeFlush, kGroups);
  static constexpr int kHalves = kPlanes ? 1 : 2;  ///< 8 or 16 rows
  static constexpr int kColumns = kPlanes || kFlush == kGroups ? 5 : 3;
  static constexpr bool kHasMin = kWithMin;
  static constexpr int kShift = kShiftBits;
  static constexpr int kUnitStride = static_cast<int>(kUnitBytes) * (kPlanes ? 2 : 1);
};

template <class T>
using TileShape = Shape<T::kFlush, T::kSubBlocks, T::kHasMin, T::kShift>;

MEMDECAY_INLINE __m256i load_codes(const std::uint8_t* p) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
}

/// Products of kFlush groups in 16 bits, for each plane.
template <class S, int kColumns>
MEMDECAY_INLINE void tile_pairs(
    const std::uint8_t* codes, const std::int8_t* y, std::ptrdiff_t stride,
    __m256i (&pairs)[S::kPlanes ? 2 : 1][extent(S::kHalves)][extent(kColumns)]) {
  constexpr int kPlanes = S::kPlanes ? 2 : 1;
  MEMDECAY_UNROLL
  for (int g = 0; g < S::kFlush; ++g) {
    __m256i u[extent(kPlanes)][extent(S::kHalves)];
    MEMDECAY_UNROLL
    for (int plane = 0; plane < kPlanes; ++plane) {
      MEMDECAY_UNROLL
      for (int h = 0; h < S::kHalves; ++h) {
        u[plane][h] = load_codes(codes + g * S::kUnitStride + plane * 64 + h * 32);
      }
    }
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      std::int32_t four = 0;
      __builtin_memcpy(&four, y + c * stride + 4 * g, 4);
      const __m256i v = _mm256_set1_epi32(four);
      MEMDECAY_UNROLL
      for (int plane = 0; plane < kPlanes; ++plane) {
        MEMDECAY_UNROLL
        for (int h = 0; h < S::kHalves; ++h) {
          const __m256i products = _mm256_maddubs_epi16(u[plane][h], v);
          __m256i& pair = pairs[plane][h][c];
          pair = g == 0 ? products : _mm256_add_epi16(pair, products);
          keep_in_register(pair);
        }
      }
    }
  }
}

/// The exact sums of one sub-block, offset included.
template <class S, int kColumns>
MEMDECAY_INLINE void tile_sums(const std::uint8_t* codes, const TileColumns& columns, int at,
                               __m256i (&sums)[extent(S::kHalves)][extent(kColumns)]) {
  constexpr int kPlanes = S::kPlanes ? 2 : 1;
  const __m256i widen = _mm256_set1_epi16(1 << S::kShift);
  MEMDECAY_UNROLL
  for (int g = 0; g < S::kGroups; g += S::kFlush) {
    __m256i pairs[extent(kPlanes)][extent(S::kHalves)][extent(kColumns)];
    tile_pairs<S, kColumns>(codes + (at * S::kGroups + g) * S::kUnitStride,
                            columns.codes + (at * S::kGroups + g) * 4, columns.stride, pairs);
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      MEMDECAY_UNROLL
      for (int h = 0; h < S::kHalves; ++h) {
        __m256i sum = _mm256_madd_epi16(pairs[0][h][c], widen);
        if constexpr (S::kPlanes) {
          sum = _mm256_add_epi32(
              sum, _mm256_madd_epi16(pairs[kPlanes - 1][h][c], _mm256_set1_epi16(16)));
        }
        if (g > 0) {
          sum = _mm256_add_epi32(sum, sums[h][c]);
        } else if constexpr (!S::kHasMin) {
          sum = _mm256_add_epi32(
              sum, _mm256_set1_epi32(at_column(columns.offset + at, columns.stride, c)));
        }
        sums[h][c] = sum;
      }
    }
  }
}

/// out[c] += the rows of kHalves halves times kColumns columns over `blocks` blocks.
/// `half` is the first half.
template <class S, int kColumns>
MEMDECAY_NOINLINE void tile(const TilePanel& panel, int half, const TileColumns& columns,
                            int blocks, float* out, bool first) {
  constexpr int kSubBlocks = S::kSubBlocks;
  const std::ptrdiff_t stride = columns.stride;
  const std::uint8_t* codes = panel.codes + 32 * half;
  const float* scales = panel.scales + 8 * half;
  const float* mins = panel.mins + 8 * half;
  out += 8 * half;
  if (first) {
    for (int c = 0; c < kColumns; ++c) {
      for (int h = 0; h < S::kHalves; ++h) {
        _mm256_store_ps(out + c * kPanelRows + 8 * h, _mm256_setzero_ps());
      }
    }
  }
  for (int b = 0; b < blocks; ++b) {
    __m256 t[extent(S::kHalves)][extent(kColumns)];
    MEMDECAY_UNROLL
    for (int sub = 0; sub < kSubBlocks; ++sub) {
      const int at = b * kSubBlocks + sub;
      __m256i sums[extent(S::kHalves)][extent(kColumns)];
      tile_sums<S, kColumns>(codes, columns, at, sums);
      MEMDECAY_UNROLL
      for (int h = 0; h < S::kHalves; ++h) {
        const __m256 scale = _mm256_load_ps(scales + at * kPanelRows + 8 * h);
        MEMDECAY_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          const __m256 sum = _mm256_cvtepi32_ps(sums[h][c]);
          t[h][c] = sub == 0 ? _mm256_mul_ps(sum, scale) : _mm256_fmadd_ps(sum, scale, t[h][c]);
        }
      }
    }
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      MEMDECAY_UNROLL
      for (int h = 0; h < S::kHalves; ++h) {
        float* to = out + c * kPanelRows + 8 * h;
        __m256 acc = _mm256_fmadd_ps(
            t[h][c], _mm256_set1_ps(at_column(columns.scale + b, stride, c)), _mm256_load_ps(to));
        if constexpr (S::kHasMin) {
          MEMDECAY_UNROLL
          for (int sub = 0; sub < kSubBlocks; ++sub) {
            const int at = b * kSubBlocks + sub;
            acc =
                _mm256_fmadd_ps(_mm256_load_ps(mins + at * kPanelRows + 8 * h),
                                _mm256_set1_ps(at_column(columns.scaled_sum + at, stride, c)), acc);
          }
        }
        _mm256_store_ps(to, acc);
      }
    }
  }
}

}  // namespace
}  // namespace memdecay::avx2
