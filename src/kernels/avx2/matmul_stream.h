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
#include "kernels/matmul_fetch.h"

#include "kernels/target_avx2.h"

namespace memdecay::avx2 {

/// Holds x in a register at this point: keeps the compiler from starting so many products early
/// that the accumulators go to the stack.
MEMDECAY_INLINE void keep_in_register(__m256i& x) {
  asm volatile("" : "+x"(x));
}

/// sum += w * y for signed bytes w = u - 128.
MEMDECAY_INLINE __m256i add_signed_products(__m256i sum, __m256i u, __m256i y) {
  const __m256i w = flip_signs(u);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(y, w));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

template <class T>
inline constexpr int kStreamFlush = std::min({T::kFlush, T::kSteps, 8 / T::kSubBlocks});

/// Eight of the sixteen rows: rows 0 to 7 or 8 to 15.
template <class T, int kSpan, int kHalf, int kStep = 0>
MEMDECAY_INLINE void stream_steps(const std::byte* chunk, const std::int8_t* y,
                                  __m256i (&pairs)[extent(T::kCodes)],
                                  __m256i (&sums)[extent(T::kSpanBlocks * T::kSubBlocks)]) {
  if constexpr (kStep < T::kSteps) {
    constexpr bool kFirst = kStep % kStreamFlush<T> == 0;
    constexpr bool kLast = (kStep + 1) % kStreamFlush<T> == 0;
    Unit u[extent(T::kCodes)];
    T::template codes<kSpan, kStep>(chunk, u);
    MEMDECAY_UNROLL
    for (int n = 0; n < T::kCodes; ++n) {
      const int block = T::kSpanBlocks == 1 ? 0 : n;
      const int group = T::kSpanBlocks == 1 ? kStep + n * T::kSteps : kStep;
      std::int32_t four = 0;
      __builtin_memcpy(&four, y + block * kActivationBlock + 4 * group, 4);
      const __m256i v = _mm256_set1_epi32(four);
      __m256i& sum = sums[block * T::kSubBlocks + group * T::kSubBlocks / 8];
      if constexpr (T::kFlush == 1) {
        sum = add_signed_products(sum, u[n].half[kHalf], v);
      } else {
        const __m256i products = _mm256_maddubs_epi16(u[n].half[kHalf], v);
        pairs[n] = kFirst ? products : _mm256_add_epi16(pairs[n], products);
        if constexpr (kLast) {
          sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs[n], _mm256_set1_epi16(1)));
        } else {
          keep_in_register(pairs[n]);
        }
      }
    }
    stream_steps<T, kSpan, kHalf, kStep + 1>(chunk, y, pairs, sums);
  }
}

/// The scales of one chunk of 16 rows.
template <class T>
struct ChunkScales {
  static constexpr int kCount = T::kChunkInputs / kActivationBlock * T::kSubBlocks;
  Rows s[extent(kCount)];
  Rows m[extent(kCount)];
};

/// acc += block `b` of the chunk, which is block `at` of the column.
template <class T, int kHalf>
MEMDECAY_INLINE void stream_apply(const __m256i* sums, const ChunkScales<T>& scales, int b,
                                  const ConstActivationColumn& y, std::size_t at, __m256& acc) {
  const int sub = b * T::kSubBlocks;
  __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[0]), scales.s[sub].half[kHalf]);
  if constexpr (T::kSubBlocks == 2) {
    t = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[1]), scales.s[sub + 1].half[kHalf], t);
  }
  acc = _mm256_fmadd_ps(t, _mm256_set1_ps(y.scale[at]), acc);
  if constexpr (T::kHasMin && T::kSubBlocks == 1) {
    acc = _mm256_fmadd_ps(scales.m[sub].half[kHalf], _mm256_set1_ps(y.scaled_sum[at]), acc);
  }
  if constexpr (T::kHasMin && T::kSubBlocks == 2) {
    acc = _mm256_fmadd_ps(scales.m[sub].half[kHalf], _mm256_set1_ps(y.scaled_sum_16[2 * at]), acc);
    acc = _mm256_fmadd_ps(scales.m[sub + 1].half[kHalf],
                          _mm256_set1_ps(y.scaled_sum_16[2 * at + 1]), acc);
  }
}

/// acc += eight rows of one span of a chunk, whose first block is block `first` of the column.
template <class T, int kSpan, int kHalf>
MEMDECAY_INLINE void stream_half(const std::byte* chunk, const ChunkScales<T>& scales,
                                 const ConstActivationColumn& y, std::size_t first, __m256& acc) {
  constexpr int kSums = T::kSpanBlocks * T::kSubBlocks;
  __m256i sums[extent(kSums)];
  MEMDECAY_UNROLL
  for (int i = 0; i < kSums; ++i) {
    sums[i] = _mm256_setzero_si256();
    if constexpr (!T::kHasMin && T::kFlush > 1) {
      const auto block = static_cast<std::size_t>(i);
      const std::int32_t offset =
          T::kSubBlocks == 1 ? y.offset[first + block] : y.offset_16[2 * first + block];
      sums[i] = _mm256_set1_epi32(offset >> T::kShift);
    }
  }
  __m256i pairs[extent(T::kCodes)];
  stream_steps<T, kSpan, kHalf>(chunk, y.codes + first * kActivationBlock, pairs, sums);
  MEMDECAY_UNROLL
  for (int b = 0; b < T::kSpanBlocks; ++b) {
    stream_apply<T, kHalf>(sums + b * T::kSubBlocks, scales, kSpan * T::kSpanBlocks + b, y,
                           first + static_cast<std::size_t>(b), acc);
  }
}

template <class T, int kSpan>
MEMDECAY_INLINE void stream_span(const std::byte* chunk, const ChunkScales<T>& scales,
                                 const ConstActivationColumn& y, std::size_t first, bool fetch,
                                 Rows& acc) {
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  constexpr std::size_t kSpanBytes = T::kChunkBytes / extent(kSpans);
  if (fetch) {
    MEMDECAY_UNROLL
    for (std::size_t line = 0; line < kSpanBytes; line += 64) {
      _mm_prefetch(chunk + extent(kSpan) * kSpanBytes + kFetchAhead + line, _MM_HINT_T0);
    }
  }
  stream_half<T, kSpan, 0>(chunk, scales, y, first, acc.half[0]);
  stream_half<T, kSpan, 1>(chunk, scales, y, first, acc.half[1]);
}

/// Span by span over all panels, so that the memory streams advance together.
template <class T, int kPanels, int kSpan = 0>
MEMDECAY_INLINE void stream_spans(const std::byte* chunk, std::size_t panel_bytes,
                                  const ChunkScales<T>* scales, const ConstActivationColumn& y,
                                  std::size_t at, bool fetch, Rows* acc) {
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  if constexpr (kSpan < kSpans) {
    const std::size_t first = at + extent(kSpan * T::kSpanBlocks);
    if constexpr (T::kChunkInputs == PairChunk::kInputs) {
      MEMDECAY_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        stream_span<T, kSpan>(chunk + extent(p) * panel_bytes, scales[p], y, first, fetch, acc[p]);
      }
    } else {  // long spans: the loop costs nothing, its copies would
      MEMDECAY_ROLLED
      for (int p = 0; p < kPanels; ++p) {
        stream_span<T, kSpan>(chunk + extent(p) * panel_bytes, scales[p], y, first, fetch, acc[p]);
      }
    }
    stream_spans<T, kPanels, kSpan + 1>(chunk, panel_bytes, scales, y, at, fetch, acc);
  }
}

/// out[p] = the 16 rows of panel p times the column.
template <class T, int kPanels>
MEMDECAY_NOINLINE void stream_column(const std::byte* panels, std::size_t panel_bytes,
                                     std::size_t chunks, const ConstActivationColumn& y, bool fetch,
                                     Rows* out) {
  constexpr std::size_t kChunkBlocks = T::kChunkInputs / kActivationBlock;
  Rows acc[extent(kPanels)];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) acc[p] = {{_mm256_setzero_ps(), _mm256_setzero_ps()}};
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::byte* chunk = panels + c * T::kChunkBytes;
    ChunkScales<T> scales[extent(kPanels)];
    MEMDECAY_ROLLED
    for (int p = 0; p < kPanels; ++p) {
      T::scales(chunk + extent(p) * panel_bytes, scales[p].s, scales[p].m);
    }
    stream_spans<T, kPanels>(chunk, panel_bytes, scales, y, c * kChunkBlocks, fetch, acc);
  }
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) out[p] = acc[p];
}

}  // namespace memdecay::avx2

#include "kernels/target_end.h"
