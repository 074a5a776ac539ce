// UnpackedPanel: the codes and scales of one pass over a panel in L1, where all columns meet them.
//
// What a unit of codes looks like there is the instruction set's: P = Products<T> states
//     Weights         T
//     kUnitStride     bytes from one unit to the next
//     store_unit()    writes one
// Scales carry 2^-kShift, for which the products make up; both are exact.
// Included inside a target region.
#pragma once

#include "kernels/generic/matmul/chunk_scales.h"

namespace memdecay {
namespace {

/// [block][group][plane] and [block][sub-block].
template <int kBlocks, int kPlanes>
struct UnpackedPanel {
  alignas(64) std::uint8_t codes[extent(kBlocks * 8 * kPlanes) * kUnitBytes];
  alignas(64) float scales[extent(kBlocks * 2) * kPanelRows];
  alignas(64) float mins[extent(kBlocks * 2) * kPanelRows];
};

template <class P, int kSpan = 0, int kStep = 0>
MEMDECAY_INLINE void unpack_steps(const std::byte* chunk, std::uint8_t* out) {
  using T = typename P::Weights;
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  if constexpr (kSpan == kSpans) {
    return;
  } else if constexpr (kStep == T::kSteps) {
    unpack_steps<P, kSpan + 1, 0>(chunk, out);
  } else {
    Unit<typename T::Lanes> u[extent(T::kCodes)];
    T::template codes<kSpan, kStep>(chunk, u);
    MEMDECAY_UNROLL
    for (int n = 0; n < T::kCodes; ++n) {
      const int block = kSpan * T::kSpanBlocks + (T::kSpanBlocks == 1 ? 0 : n);
      const int group = T::kSpanBlocks == 1 ? kStep + n * T::kSteps : kStep;
      P::store_unit(out + (block * 8 + group) * P::kUnitStride, u[n]);
    }
    unpack_steps<P, kSpan, kStep + 1>(chunk, out);
  }
}

template <class P>
MEMDECAY_INLINE void unpack_chunk(const std::byte* chunk, std::uint8_t* codes, float* scales,
                                  float* mins) {
  using T = typename P::Weights;
  unpack_steps<P>(chunk, codes);
  ChunkScales<T> s;
  T::scales(chunk, s.s, s.m);
  constexpr float kUnshift = 1.0f / static_cast<float>(1 << T::kShift);
  MEMDECAY_UNROLL
  for (int i = 0; i < ChunkScales<T>::kCount; ++i) {
    (T::kShift == 0 ? s.s[i] : s.s[i].times(kUnshift)).store(scales + i * kPanelRows);
    if constexpr (T::kHasMin) s.m[i].store(mins + i * kPanelRows);
  }
}

/// `next` is what the next pass will unpack: it comes in while this pass computes.
template <class P>
MEMDECAY_NOINLINE void unpack_panel(const std::byte* chunk, std::size_t chunks,
                                    const std::byte* next, typename P::Unpacked& out) {
  using T = typename P::Weights;
  constexpr std::size_t kCodeBytes = extent(T::kChunkInputs / 4) * extent(P::kUnitStride);
  constexpr std::size_t kScales = static_cast<std::size_t>(ChunkScales<T>::kCount) * kPanelRows;
  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t line = 0; line < T::kChunkBytes; line += 64) {
      _mm_prefetch(next + c * T::kChunkBytes + line, _MM_HINT_T1);
    }
    unpack_chunk<P>(chunk + c * T::kChunkBytes, out.codes + c * kCodeBytes,
                    out.scales + c * kScales, out.mins + c * kScales);
  }
}

/// The column slices that a tile reads; block 0 is the first of the pass.
struct TileColumns {
  const std::int8_t* codes;
  const float* scale;
  const std::int32_t* offset;  ///< per 32 or per 16, as the type needs
  const float* scaled_sum;     ///< likewise
  std::ptrdiff_t stride;       ///< bytes from one column to the next

  TileColumns(const ConstActivationColumn& column, std::size_t block, int sub_blocks,
              std::size_t column_bytes)
      : codes(column.codes + block * kActivationBlock),
        scale(column.scale + block),
        offset(sub_blocks == 1 ? column.offset + block : column.offset_16 + 2 * block),
        scaled_sum(sub_blocks == 1 ? column.scaled_sum + block : column.scaled_sum_16 + 2 * block),
        stride(static_cast<std::ptrdiff_t>(column_bytes)) {}
};

template <typename Value>
MEMDECAY_INLINE Value at_column(const Value* first, std::ptrdiff_t stride, int column) {
  Value value;
  __builtin_memcpy(&value, reinterpret_cast<const std::byte*>(first) + column * stride,
                   sizeof(value));
  return value;
}

}  // namespace
}  // namespace memdecay
