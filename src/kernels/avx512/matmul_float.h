// Float weights (F32, F16, BF16) times float activations, fused multiply-adds in input order.
//
// Sums are kept per 256 inputs and then added up, for accuracy at large k, in the same order for
// one column and for many.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul_unroll.h"
#include "quant/panel.h"

#include "kernels/target_avx512.h"

namespace memdecay::avx512 {

inline constexpr int kFloatTilePanels = 2;
inline constexpr int kFloatTileColumns = 12;
inline constexpr int kFloatPass = 256;

struct F32Weights {
  static constexpr std::size_t kBytes = 4;
  static MEMDECAY_INLINE __m512 load(const std::byte* p) { return _mm512_loadu_ps(p); }
};

struct F16Weights {
  static constexpr std::size_t kBytes = 2;
  static MEMDECAY_INLINE __m512 load(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
};

struct BF16Weights {
  static constexpr std::size_t kBytes = 2;
  static MEMDECAY_INLINE __m512 load(const std::byte* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
};

/// total[p][c] += panels times columns over at most kFloatPass inputs. `panels` points at the
/// first input of the pass in the first panel.
template <class W, int kPanels, int kColumns>
MEMDECAY_NOINLINE void float_pass(const std::byte* panels, std::size_t panel_bytes, const float* x,
                                  std::ptrdiff_t ld_x, int inputs, float* const* total,
                                  bool first) {
  __m512 acc[extent(kPanels)][extent(kColumns)];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) acc[p][c] = _mm512_setzero_ps();
  }
  const std::byte* weights = panels;
  for (int i = 0; i < inputs; ++i) {
    __m512 w[extent(kPanels)];
    MEMDECAY_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      w[p] = W::load(weights + static_cast<std::size_t>(p) * panel_bytes);
    }
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const __m512 v = _mm512_set1_ps(x[c * ld_x + i]);
      MEMDECAY_UNROLL
      for (int p = 0; p < kPanels; ++p) acc[p][c] = _mm512_fmadd_ps(w[p], v, acc[p][c]);
    }
    weights += kPanelRows * W::kBytes;
  }
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      float* to = total[p] + c * kPanelRows;
      _mm512_store_ps(to, first ? acc[p][c] : _mm512_add_ps(_mm512_load_ps(to), acc[p][c]));
    }
  }
}

}  // namespace memdecay::avx512

#include "kernels/target_end.h"
