// Many columns: panels are unpacked once into a buffer in L1 and meet all columns there.
//
// The buffer holds byte codes whose offset is 128 for every type (smaller codes are shifted up, and
// their scales divided by the same power of two, which is exact), so few kernels serve all types.
// The offset costs nothing: -128 * sum(y) is where the integer sum starts.
#pragma once

#include "kernels/avx512/matmul_stream.h"

#include "kernels/target_avx512.h"

namespace memdecay::avx512 {

inline constexpr int kTilePanels = 2;
inline constexpr int kTileColumns = 6;
/// Inputs per pass: the codes of two panels then take 32 KiB.
inline constexpr int kTileInputs = 1024;
inline constexpr int kTileBlocks = kTileInputs / kActivationBlock;

/// Unpacked codes and scales of one panel, [block][group] and [block][sub-block].
struct UnpackedPanel {
  alignas(64) std::uint8_t codes[kTileBlocks * 8 * kUnitBytes];
  alignas(64) float scales[kTileBlocks * 2 * kPanelRows];
  alignas(64) float mins[kTileBlocks * 2 * kPanelRows];
};

template <class T, int kSpan = 0, int kStep = 0>
MEMDECAY_INLINE void unpack_steps(const std::byte* chunk, std::uint8_t* out) {
  constexpr int kSpans = T::kChunkInputs / kActivationBlock / T::kSpanBlocks;
  if constexpr (kSpan == kSpans) {
    return;
  } else if constexpr (kStep == T::kSteps) {
    unpack_steps<T, kSpan + 1, 0>(chunk, out);
  } else {
    Unit u[extent(T::kCodes)];
    T::template codes<kSpan, kStep>(chunk, u);
    MEMDECAY_UNROLL
    for (int n = 0; n < T::kCodes; ++n) {
      const int block = kSpan * T::kSpanBlocks + (T::kSpanBlocks == 1 ? 0 : n);
      const int group = T::kSpanBlocks == 1 ? kStep + n * T::kSteps : kStep;
      _mm512_store_si512(out + (block * 8 + group) * static_cast<int>(kUnitBytes),
                         T::kShift == 0 ? u[n] : _mm512_slli_epi16(u[n], T::kShift));
    }
    unpack_steps<T, kSpan, kStep + 1>(chunk, out);
  }
}

template <class T>
MEMDECAY_INLINE void unpack_chunk(const std::byte* chunk, std::uint8_t* codes, float* scales,
                                  float* mins) {
  unpack_steps<T>(chunk, codes);
  ChunkScales<T> s;
  T::scales(chunk, s.s, s.m);
  const __m512 unshift = _mm512_set1_ps(1.0f / static_cast<float>(1 << T::kShift));
  MEMDECAY_UNROLL
  for (int i = 0; i < ChunkScales<T>::kCount; ++i) {
    _mm512_store_ps(scales + i * kPanelRows,
                    T::kShift == 0 ? s.s[i] : _mm512_mul_ps(s.s[i], unshift));
    if constexpr (T::kHasMin) _mm512_store_ps(mins + i * kPanelRows, s.m[i]);
  }
}

/// `next` is what the next pass will unpack: it comes in while this pass computes.
template <class T>
MEMDECAY_NOINLINE void unpack_panel(const std::byte* chunk, std::size_t chunks,
                                    const std::byte* next, UnpackedPanel& out) {
  constexpr std::size_t kCodeBytes = static_cast<std::size_t>(T::kChunkInputs) * kPanelRows;
  constexpr std::size_t kScales = static_cast<std::size_t>(ChunkScales<T>::kCount) * kPanelRows;
  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t line = 0; line < T::kChunkBytes; line += 64) {
      _mm_prefetch(next + c * T::kChunkBytes + line, _MM_HINT_T1);
    }
    unpack_chunk<T>(chunk + c * T::kChunkBytes, out.codes + c * kCodeBytes,
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
};

template <typename Value>
MEMDECAY_INLINE Value at_column(const Value* first, std::ptrdiff_t stride, int column) {
  Value value;
  __builtin_memcpy(&value, reinterpret_cast<const std::byte*>(first) + column * stride,
                   sizeof(value));
  return value;
}

template <int kGroups, int kPanels, int kColumns>
MEMDECAY_INLINE void tile_sums(const UnpackedPanel* panels, int unit, const std::int8_t* y,
                               std::ptrdiff_t stride,
                               __m512i (&sums)[extent(kPanels)][extent(kColumns)]) {
  MEMDECAY_UNROLL
  for (int g = 0; g < kGroups; ++g) {
    Unit u[extent(kPanels)];
    MEMDECAY_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      u[p] = _mm512_load_si512(panels[p].codes + (unit + g) * static_cast<int>(kUnitBytes));
    }
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      std::int32_t four = 0;
      __builtin_memcpy(&four, y + c * stride + 4 * g, 4);
      const __m512i v = _mm512_set1_epi32(four);
      MEMDECAY_UNROLL
      for (int p = 0; p < kPanels; ++p) sums[p][c] = _mm512_dpbusd_epi32(sums[p][c], u[p], v);
    }
  }
}

/// acc[p][c] += the panels times kColumns columns over `blocks` blocks.
template <int kSubBlocks, bool kHasMin, int kPanels, int kColumns>
MEMDECAY_NOINLINE void tile(const UnpackedPanel* panels, const TileColumns& columns, int blocks,
                            float* const* out, bool first) {
  __m512 acc[extent(kPanels)][extent(kColumns)];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      acc[p][c] = first ? _mm512_setzero_ps() : _mm512_load_ps(out[p] + c * kPanelRows);
    }
  }
  const std::ptrdiff_t stride = columns.stride;
  for (int b = 0; b < blocks; ++b) {
    __m512 t[extent(kPanels)][extent(kColumns)];
    MEMDECAY_UNROLL
    for (int sub = 0; sub < kSubBlocks; ++sub) {
      const int at = b * kSubBlocks + sub;
      __m512i sums[extent(kPanels)][extent(kColumns)];
      MEMDECAY_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        const __m512i start = kHasMin
                                  ? _mm512_setzero_si512()
                                  : _mm512_set1_epi32(at_column(columns.offset + at, stride, c));
        MEMDECAY_UNROLL
        for (int p = 0; p < kPanels; ++p) sums[p][c] = start;
      }
      tile_sums<8 / kSubBlocks, kPanels, kColumns>(
          panels, at * (8 / kSubBlocks), columns.codes + at * (32 / kSubBlocks), stride, sums);
      MEMDECAY_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        const __m512 scale = _mm512_load_ps(panels[p].scales + at * kPanelRows);
        MEMDECAY_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          const __m512 sum = _mm512_cvtepi32_ps(sums[p][c]);
          t[p][c] = sub == 0 ? _mm512_mul_ps(sum, scale) : _mm512_fmadd_ps(sum, scale, t[p][c]);
        }
      }
    }
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const __m512 dy = _mm512_set1_ps(at_column(columns.scale + b, stride, c));
      MEMDECAY_UNROLL
      for (int p = 0; p < kPanels; ++p) acc[p][c] = _mm512_fmadd_ps(t[p][c], dy, acc[p][c]);
    }
    if constexpr (kHasMin) {
      MEMDECAY_UNROLL
      for (int sub = 0; sub < kSubBlocks; ++sub) {
        const int at = b * kSubBlocks + sub;
        MEMDECAY_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          const __m512 dysum = _mm512_set1_ps(at_column(columns.scaled_sum + at, stride, c));
          MEMDECAY_UNROLL
          for (int p = 0; p < kPanels; ++p) {
            const __m512 min = _mm512_load_ps(panels[p].mins + at * kPanelRows);
            acc[p][c] = _mm512_fmadd_ps(min, dysum, acc[p][c]);
          }
        }
      }
    }
  }
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) _mm512_store_ps(out[p] + c * kPanelRows, acc[p][c]);
  }
}

}  // namespace memdecay::avx512

#include "kernels/target_end.h"
