// One column: weights stream from memory once and are unpacked in registers.
//
// kPanels panels are walked together, one memory stream each. Products of codes below 64 gather in
// 16 bits (T::kFlush groups at most), byte codes use |w| * (sign(w) y), which fits as |w| <= 128
// and |y| <= 127. The sums of a block are exact integers either way; per block of 32 inputs then
//     t = float(sum) * scale            (two sub-blocks: t = fma(float(sum_b), scale_b, t))
//     acc = fma(t, dy, acc)             (mins: acc = fma(min, dy * sum(y), acc))
// which is what matmul_tile.h does too, so both give the same bits.
#pragma once

#include <algorithm>

#include "kernels/avx2/matmul_unpack.h"
#include "kernels/matmul_activations.h"

#include "kernels/target_avx2.h"

namespace memdecay::avx2 {

/// Exact sums of 16 rows.
struct Sums {
  __m256i half[2];
};

/// sum += w * y for signed bytes w = u - 128.
MEMDECAY_INLINE __m256i add_signed_products(__m256i sum, __m256i u, __m256i y) {
  const __m256i w = flip_signs(u);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(y, w));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

template <class T>
inline constexpr int kStreamFlush = std::min({T::kFlush, T::kSteps, 8 / T::kSubBlocks});

template <class T, int kSpan, int kStep = 0>
MEMDECAY_INLINE void stream_steps(const std::byte* chunk, const std::int8_t* y,
                                  Sums (&pairs)[T::kCodes],
                                  Sums (&sums)[T::kSpanBlocks * T::kSubBlocks]) {
  if constexpr (kStep < T::kSteps) {
    constexpr bool kFirst = kStep % kStreamFlush<T> == 0;
    constexpr bool kLast = (kStep + 1) % kStreamFlush<T> == 0;
    Unit u[T::kCodes];
    T::template codes<kSpan, kStep>(chunk, u);
    MEMDECAY_UNROLL
    for (int n = 0; n < T::kCodes; ++n) {
      const int block = T::kSpanBlocks == 1 ? 0 : n;
      const int group = T::kSpanBlocks == 1 ? kStep + n * T::kSteps : kStep;
      std::int32_t four = 0;
      __builtin_memcpy(&four, y + block * kActivationBlock + 4 * group, 4);
      const __m256i v = _mm256_set1_epi32(four);
      Sums& sum = sums[block * T::kSubBlocks + group * T::kSubBlocks / 8];
      MEMDECAY_UNROLL
      for (int h = 0; h < 2; ++h) {
        if constexpr (T::kFlush == 1) {
          sum.half[h] = add_signed_products(sum.half[h], u[n].half[h], v);
        } else {
          const __m256i products = _mm256_maddubs_epi16(u[n].half[h], v);
          pairs[n].half[h] = kFirst ? products : _mm256_add_epi16(pairs[n].half[h], products);
          if constexpr (kLast) {
            sum.half[h] = _mm256_add_epi32(
                sum.half[h], _mm256_madd_epi16(pairs[n].half[h], _mm256_set1_epi16(1)));
          }
        }
      }
    }
    stream_steps<T, kSpan, kStep + 1>(chunk, y, pairs, sums);
  }
}

/// The scales of one chunk of 16 rows.
template <class T>
struct ChunkScales {
  static constexpr int kCount = T::kChunkInputs / kActivationBlock * T::kSubBlocks;
  Rows s[kCount];
  Rows m[kCount];
};

/// acc += block `b` of the chunk, which is block `at` of the column.
template <class T>
MEMDECAY_INLINE void stream_apply(const Sums* sums, const ChunkScales<T>& scales, int b,
                                  const ConstActivationColumn& y, std::size_t at, Rows& acc) {
  const int sub = b * T::kSubBlocks;
  MEMDECAY_UNROLL
  for (int h = 0; h < 2; ++h) {
    __m256& total = acc.half[h];
    __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[0].half[h]), scales.s[sub].half[h]);
    if constexpr (T::kSubBlocks == 2) {
      t = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[1].half[h]), scales.s[sub + 1].half[h], t);
    }
    total = _mm256_fmadd_ps(t, _mm256_set1_ps(y.scale[at]), total);
    if constexpr (T::kHasMin && T::kSubBlocks == 1) {
      total = _mm256_fmadd_ps(scales.m[sub].half[h], _mm256_set1_ps(y.scaled_sum[at]), total);
    }
    if constexpr (T::kHasMin && T::kSubBlocks == 2) {
      total =
          _mm256_fmadd_ps(scales.m[sub].half[h], _mm256_set1_ps(y.scaled_sum_16[2 * at]), total);
      total = _mm256_fmadd_ps(scales.m[sub + 1].half[h],
                              _mm256_set1_ps(y.scaled_sum_16[2 * at + 1]), total);
    }
  }
}

template <class T, int kSpan = 0>
MEMDECAY_INLINE void stream_spans(const std::byte* chunk, const ChunkScales<T>& scales,
                                  const ConstActivationColumn& y, std::size_t at, Rows& acc) {
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  if constexpr (kSpan < kSpans) {
    constexpr int kFirst = kSpan * T::kSpanBlocks;
    Sums sums[T::kSpanBlocks * T::kSubBlocks];
    MEMDECAY_UNROLL
    for (int i = 0; i < T::kSpanBlocks * T::kSubBlocks; ++i) {
      __m256i start = _mm256_setzero_si256();
      if constexpr (!T::kHasMin && T::kFlush > 1) {
        const std::int32_t offset =
            T::kSubBlocks == 1 ? y.offset[at + static_cast<std::size_t>(kFirst + i)]
                               : y.offset_16[2 * at + static_cast<std::size_t>(2 * kFirst + i)];
        start = _mm256_set1_epi32(offset >> T::kShift);
      }
      sums[i].half[0] = start;
      sums[i].half[1] = start;
    }
    Sums pairs[T::kCodes];
    stream_steps<T, kSpan>(
        chunk, y.codes + (at + static_cast<std::size_t>(kFirst)) * kActivationBlock, pairs, sums);
    MEMDECAY_UNROLL
    for (int b = 0; b < T::kSpanBlocks; ++b) {
      stream_apply<T>(sums + b * T::kSubBlocks, scales, kFirst + b, y,
                      at + static_cast<std::size_t>(kFirst + b), acc);
    }
    stream_spans<T, kSpan + 1>(chunk, scales, y, at, acc);
  }
}

/// acc[p] = the 16 rows of panel p times the column.
template <class T, int kPanels>
inline void stream_column(const std::byte* panels, std::size_t panel_bytes, std::size_t chunks,
                          const ConstActivationColumn& y, Rows* out) {
  constexpr std::size_t kChunkBlocks = T::kChunkInputs / kActivationBlock;
  Rows acc[kPanels];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) acc[p] = {{_mm256_setzero_ps(), _mm256_setzero_ps()}};
  for (std::size_t c = 0; c < chunks; ++c) {
    MEMDECAY_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* chunk =
          panels + static_cast<std::size_t>(p) * panel_bytes + c * T::kChunkBytes;
      ChunkScales<T> scales;
      T::scales(chunk, scales.s, scales.m);
      stream_spans<T>(chunk, scales, y, c * kChunkBlocks, acc[p]);
    }
  }
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) out[p] = acc[p];
}

}  // namespace memdecay::avx2

#include "kernels/target_end.h"
