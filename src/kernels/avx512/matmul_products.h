// Products: how AVX-512 with VNNI multiplies a quantized weight type, for generic/matmul.
//
// One column: vpdpbusd over codes as they come. Many: the buffer holds byte codes whose offset is
// 128 for every type (smaller codes are shifted up, and their scales divided by the same power of
// two, which is exact), so few kernels serve all types. The offset costs nothing: -128 * sum(y) is
// where the integer sum starts. Included inside the avx512 region.
#pragma once

#include "kernels/avx512/lanes.h"
#include "kernels/generic/matmul/unpacked_panel.h"

namespace memdecay::avx512 {
namespace {

inline constexpr int kTilePanels = 2;
inline constexpr int kTileColumns = 6;
/// Of 32 inputs per pass: the codes of two panels then take 32 KiB.
inline constexpr int kTileBlocks = 32;
using TilePanel = UnpackedPanel<kTileBlocks, 1>;

template <int kGroups, int kPanels, int kColumns>
MEMDECAY_INLINE void tile_sums(const TilePanel* panels, int unit, const std::int8_t* y,
                               std::ptrdiff_t stride,
                               __m512i (&sums)[extent(kPanels)][extent(kColumns)]) {
  MEMDECAY_UNROLL
  for (int g = 0; g < kGroups; ++g) {
    __m512i u[extent(kPanels)];
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
MEMDECAY_NOINLINE void tile(const TilePanel* panels, const TileColumns& columns, int blocks,
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

template <class T>
struct Products {
  using Weights = T;

  // ---- one column

  static constexpr bool kStartsAtOffset = !T::kHasMin;
  static constexpr bool kUnrollsShortScales = true;

  template <int kStep>
  static MEMDECAY_INLINE void add_products(__m512i codes, __m512i four, __m512i&, __m512i& sum) {
    sum = _mm512_dpbusd_epi32(sum, codes, four);
  }

  // ---- many columns

  using Unpacked = TilePanel;
  static constexpr int kPanels = kTilePanels;
  static constexpr int kColumns = kTileColumns;
  static constexpr int kBlocks = kTileBlocks;
  static constexpr int kUnitStride = static_cast<int>(kUnitBytes);

  static MEMDECAY_INLINE void store_unit(std::uint8_t* out, const Unit<Lanes>& u) {
    _mm512_store_si512(out, Lanes::shift_left<T::kShift>(u.part[0]));
  }

  template <int kPanelCount, int kColumnCount>
  static MEMDECAY_INLINE void multiply(const Unpacked* panels, const TileColumns& columns,
                                       int blocks, float* const* out, bool first) {
    tile<T::kSubBlocks, T::kHasMin, kPanelCount, kColumnCount>(panels, columns, blocks, out, first);
  }
};

}  // namespace
}  // namespace memdecay::avx512
