// One column: weights stream from memory once and are unpacked in registers.
//
// kPanels panels are walked together, one memory stream each. The sums of a block are exact
// integers; per block of 32 inputs then
//     t = float(sum) * scale            (two sub-blocks: t = fma(float(sum_b), scale_b, t))
//     acc = fma(t, dy, acc)             (mins: acc = fma(min, dy * sum(y), acc))
// which is what matmul_tile.h does too, so both give the same bits.
#pragma once

#include "kernels/avx512/matmul_unpack.h"
#include "kernels/matmul_activations.h"
#include "kernels/matmul_fetch.h"

#include "kernels/target_avx512.h"

namespace memdecay::avx512 {

template <class T, int kSpan, int kStep = 0>
MEMDECAY_INLINE void stream_steps(const std::byte* chunk, const std::int8_t* y,
                                  __m512i (&sums)[extent(T::kSpanBlocks * T::kSubBlocks)]) {
  if constexpr (kStep < T::kSteps) {
    Unit u[extent(T::kCodes)];
    T::template codes<kSpan, kStep>(chunk, u);
    MEMDECAY_UNROLL
    for (int n = 0; n < T::kCodes; ++n) {
      const int block = T::kSpanBlocks == 1 ? 0 : n;
      const int group = T::kSpanBlocks == 1 ? kStep + n * T::kSteps : kStep;
      std::int32_t four = 0;
      __builtin_memcpy(&four, y + block * kActivationBlock + 4 * group, 4);
      __m512i& sum = sums[block * T::kSubBlocks + group * T::kSubBlocks / 8];
      sum = _mm512_dpbusd_epi32(sum, u[n], _mm512_set1_epi32(four));
    }
    stream_steps<T, kSpan, kStep + 1>(chunk, y, sums);
  }
}

/// The scales of one chunk of 16 rows.
template <class T>
struct ChunkScales {
  static constexpr int kCount = T::kChunkInputs / kActivationBlock * T::kSubBlocks;
  __m512 s[extent(kCount)];
  __m512 m[extent(kCount)];
};

/// acc += block `b` of the chunk, which is block `at` of the column.
template <class T>
MEMDECAY_INLINE void stream_apply(const __m512i* sums, const ChunkScales<T>& scales, int b,
                                  const ConstActivationColumn& y, std::size_t at, __m512& acc) {
  const int sub = b * T::kSubBlocks;
  __m512 t = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[0]), scales.s[sub]);
  if constexpr (T::kSubBlocks == 2) {
    t = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[1]), scales.s[sub + 1], t);
  }
  acc = _mm512_fmadd_ps(t, _mm512_set1_ps(y.scale[at]), acc);
  if constexpr (T::kHasMin && T::kSubBlocks == 1) {
    acc = _mm512_fmadd_ps(scales.m[sub], _mm512_set1_ps(y.scaled_sum[at]), acc);
  }
  if constexpr (T::kHasMin && T::kSubBlocks == 2) {
    acc = _mm512_fmadd_ps(scales.m[sub], _mm512_set1_ps(y.scaled_sum_16[2 * at]), acc);
    acc = _mm512_fmadd_ps(scales.m[sub + 1], _mm512_set1_ps(y.scaled_sum_16[2 * at + 1]), acc);
  }
}

/// acc += one span of a chunk, whose first block is block `first` of the column.
template <class T, int kSpan>
MEMDECAY_INLINE void stream_span(const std::byte* chunk, const ChunkScales<T>& scales,
                                 const ConstActivationColumn& y, std::size_t first, bool fetch,
                                 __m512& acc) {
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  constexpr int kSums = T::kSpanBlocks * T::kSubBlocks;
  constexpr std::size_t kSpanBytes = T::kChunkBytes / extent(kSpans);
  if (fetch) {
    MEMDECAY_UNROLL
    for (std::size_t line = 0; line < kSpanBytes; line += 64) {
      _mm_prefetch(chunk + extent(kSpan) * kSpanBytes + kFetchAhead + line, _MM_HINT_T0);
    }
  }
  __m512i sums[extent(kSums)];
  MEMDECAY_UNROLL
  for (int i = 0; i < kSums; ++i) {
    const auto block = static_cast<std::size_t>(i);
    const std::int32_t offset =
        T::kSubBlocks == 1 ? y.offset[first + block] : y.offset_16[2 * first + block];
    sums[i] = T::kHasMin ? _mm512_setzero_si512() : _mm512_set1_epi32(offset >> T::kShift);
  }
  stream_steps<T, kSpan>(chunk, y.codes + first * kActivationBlock, sums);
  MEMDECAY_UNROLL
  for (int b = 0; b < T::kSpanBlocks; ++b) {
    stream_apply<T>(sums + b * T::kSubBlocks, scales, kSpan * T::kSpanBlocks + b, y,
                    first + static_cast<std::size_t>(b), acc);
  }
}

/// Span by span over all panels, so that the memory streams advance together.
template <class T, int kPanels, int kSpan = 0>
MEMDECAY_INLINE void stream_spans(const std::byte* chunk, std::size_t panel_bytes,
                                  const ChunkScales<T>* scales, const ConstActivationColumn& y,
                                  std::size_t at, bool fetch, __m512* acc) {
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
                                     __m512* out) {
  constexpr std::size_t kChunkBlocks = T::kChunkInputs / kActivationBlock;
  __m512 acc[extent(kPanels)];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) acc[p] = _mm512_setzero_ps();
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::byte* chunk = panels + c * T::kChunkBytes;
    ChunkScales<T> scales[extent(kPanels)];
    if constexpr (T::kChunkInputs == PairChunk::kInputs) {
      MEMDECAY_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        T::scales(chunk + extent(p) * panel_bytes, scales[p].s, scales[p].m);
      }
    } else {
      MEMDECAY_ROLLED
      for (int p = 0; p < kPanels; ++p) {
        T::scales(chunk + extent(p) * panel_bytes, scales[p].s, scales[p].m);
      }
    }
    stream_spans<T, kPanels>(chunk, panel_bytes, scales, y, c * kChunkBlocks, fetch, acc);
  }
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) out[p] = acc[p];
}

}  // namespace memdecay::avx512

#include "kernels/target_end.h"
