// One column: weights stream from memory once and are unpacked in registers.
//
// kPanels panels are walked together, one memory stream each. The sums of a block are exact
// integers; per block of 32 inputs then
//     t = float(sum) * scale            (two sub-blocks: t = fma(float(sum_b), scale_b, t))
//     acc = fma(t, dy, acc)             (mins: acc = fma(min, dy * sum(y), acc))
// which is what the tiles of many columns do too, so both give the same bits. How codes become sums
// is the instruction set's: P = Products<T> states
//     Weights                 T
//     kStartsAtOffset         whether sums start at the offset of codes; else there is none, or
//                             add_products() adds it
//     add_products<step>()    one vector of codes times four inputs, added to the sums or gathered
//     kUnrollsShortScales     whether the scales of short chunks are read in an unrolled loop
// Included inside a target region.
#pragma once

#include "kernels/generic/matmul/chunk_scales.h"

namespace memdecay {
namespace {

/// sums += the products of one span of a chunk, of one vector of rows, step by step. `gathered` is
/// room for what P adds up on the way.
template <class P, int kSpan, int kPart, int kStep = 0>
MEMDECAY_INLINE void stream_steps(const std::byte* chunk, const std::int8_t* y,
                                  typename P::Weights::Lanes::Words* gathered,
                                  typename P::Weights::Lanes::Words* sums) {
  using T = typename P::Weights;
  if constexpr (kStep < T::kSteps) {
    Unit<typename T::Lanes> u[extent(T::kCodes)];
    T::template codes<kSpan, kStep>(chunk, u);
    MEMDECAY_UNROLL
    for (int n = 0; n < T::kCodes; ++n) {
      const int block = T::kSpanBlocks == 1 ? 0 : n;
      const int group = T::kSpanBlocks == 1 ? kStep + n * T::kSteps : kStep;
      std::int32_t four = 0;
      __builtin_memcpy(&four, y + block * kActivationBlock + 4 * group, 4);
      P::template add_products<kStep>(u[n].part[kPart], T::Lanes::set_words(four), gathered[n],
                                      sums[block * T::kSubBlocks + group * T::kSubBlocks / 8]);
    }
    stream_steps<P, kSpan, kPart, kStep + 1>(chunk, y, gathered, sums);
  }
}

/// acc += block `b` of the chunk, which is block `at` of the column.
template <class T, int kPart>
MEMDECAY_INLINE void stream_apply(const typename T::Lanes::Words* sums,
                                  const ChunkScales<T>& scales, int b,
                                  const ConstActivationColumn& y, std::size_t at,
                                  typename T::Lanes::Floats& acc) {
  using L = typename T::Lanes;
  const int sub = b * T::kSubBlocks;
  typename L::Floats t = L::mul(L::to_floats(sums[0]), scales.s[sub].part[kPart]);
  if constexpr (T::kSubBlocks == 2) {
    t = L::fma(L::to_floats(sums[1]), scales.s[sub + 1].part[kPart], t);
  }
  acc = L::fma(t, L::set(y.scale[at]), acc);
  if constexpr (T::kHasMin && T::kSubBlocks == 1) {
    acc = L::fma(scales.m[sub].part[kPart], L::set(y.scaled_sum[at]), acc);
  }
  if constexpr (T::kHasMin && T::kSubBlocks == 2) {
    acc = L::fma(scales.m[sub].part[kPart], L::set(y.scaled_sum_16[2 * at]), acc);
    acc = L::fma(scales.m[sub + 1].part[kPart], L::set(y.scaled_sum_16[2 * at + 1]), acc);
  }
}

/// acc += one vector of rows of one span of a chunk, whose first block is block `first` of the
/// column; then the vectors behind it.
template <class P, int kSpan, int kPart = 0>
MEMDECAY_INLINE void stream_parts(const std::byte* chunk,
                                  const ChunkScales<typename P::Weights>& scales,
                                  const ConstActivationColumn& y, std::size_t first,
                                  Rows<typename P::Weights::Lanes>& acc) {
  using T = typename P::Weights;
  using L = typename T::Lanes;
  if constexpr (kPart < kParts<L>) {
    constexpr int kSums = T::kSpanBlocks * T::kSubBlocks;
    typename L::Words sums[extent(kSums)];
    MEMDECAY_UNROLL
    for (int i = 0; i < kSums; ++i) {
      sums[i] = L::zero_words();
      if constexpr (P::kStartsAtOffset) {
        const auto block = static_cast<std::size_t>(i);
        const std::int32_t offset =
            T::kSubBlocks == 1 ? y.offset[first + block] : y.offset_16[2 * first + block];
        sums[i] = L::set_words(offset >> T::kShift);
      }
    }
    typename L::Words gathered[extent(T::kCodes)];
    stream_steps<P, kSpan, kPart>(chunk, y.codes + first * kActivationBlock, gathered, sums);
    MEMDECAY_UNROLL
    for (int b = 0; b < T::kSpanBlocks; ++b) {
      stream_apply<T, kPart>(sums + b * T::kSubBlocks, scales, kSpan * T::kSpanBlocks + b, y,
                             first + static_cast<std::size_t>(b), acc.part[kPart]);
    }
    stream_parts<P, kSpan, kPart + 1>(chunk, scales, y, first, acc);
  }
}

template <class P, int kSpan>
MEMDECAY_INLINE void stream_span(const std::byte* chunk,
                                 const ChunkScales<typename P::Weights>& scales,
                                 const ConstActivationColumn& y, std::size_t first, bool fetch,
                                 Rows<typename P::Weights::Lanes>& acc) {
  using T = typename P::Weights;
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  constexpr std::size_t kSpanBytes = T::kChunkBytes / extent(kSpans);
  if (fetch) {
    MEMDECAY_UNROLL
    for (std::size_t line = 0; line < kSpanBytes; line += 64) {
      _mm_prefetch(chunk + extent(kSpan) * kSpanBytes + kFetchAhead + line, _MM_HINT_T0);
    }
  }
  stream_parts<P, kSpan>(chunk, scales, y, first, acc);
}

/// Span by span over all panels, so that the memory streams advance together.
template <class P, int kPanels, int kSpan = 0>
MEMDECAY_INLINE void stream_spans(const std::byte* chunk, std::size_t panel_bytes,
                                  const ChunkScales<typename P::Weights>* scales,
                                  const ConstActivationColumn& y, std::size_t at, bool fetch,
                                  Rows<typename P::Weights::Lanes>* acc) {
  using T = typename P::Weights;
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  if constexpr (kSpan < kSpans) {
    const std::size_t first = at + extent(kSpan * T::kSpanBlocks);
    if constexpr (T::kChunkInputs == PairChunk::kInputs) {
      MEMDECAY_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        stream_span<P, kSpan>(chunk + extent(p) * panel_bytes, scales[p], y, first, fetch, acc[p]);
      }
    } else {  // long spans: the loop costs nothing, its copies would
      MEMDECAY_ROLLED
      for (int p = 0; p < kPanels; ++p) {
        stream_span<P, kSpan>(chunk + extent(p) * panel_bytes, scales[p], y, first, fetch, acc[p]);
      }
    }
    stream_spans<P, kPanels, kSpan + 1>(chunk, panel_bytes, scales, y, at, fetch, acc);
  }
}

/// out[p] = the 16 rows of panel p times the column.
template <class P, int kPanels>
MEMDECAY_NOINLINE void stream_column(const std::byte* panels, std::size_t panel_bytes,
                                     std::size_t chunks, const ConstActivationColumn& y, bool fetch,
                                     Rows<typename P::Weights::Lanes>* out) {
  using T = typename P::Weights;
  using L = typename T::Lanes;
  constexpr std::size_t kChunkBlocks = T::kChunkInputs / kActivationBlock;
  Rows<L> acc[extent(kPanels)];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) acc[p] = Rows<L>::zero();
  for (std::size_t c = 0; c < chunks; ++c) {
    const std::byte* chunk = panels + c * T::kChunkBytes;
    ChunkScales<T> scales[extent(kPanels)];
    if constexpr (P::kUnrollsShortScales && T::kChunkInputs == PairChunk::kInputs) {
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
    stream_spans<P, kPanels>(chunk, panel_bytes, scales, y, c * kChunkBlocks, fetch, acc);
  }
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) out[p] = acc[p];
}

}  // namespace
}  // namespace memdecay
