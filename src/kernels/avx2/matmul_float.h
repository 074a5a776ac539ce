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

#include "kernels/target_avx2.h"

namespace memdecay::avx2 {

inline constexpr int kFloatTileColumns = 6;
inline constexpr int kFloatPass = 256;

struct F32Weights {
  static constexpr std::size_t kBytes = 4;
  static MEMDECAY_INLINE __m256 load(const std::byte* p) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  }
};

struct F16Weights {
  static constexpr std::size_t kBytes = 2;
  static MEMDECAY_INLINE __m256 load(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
};

struct BF16Weights {
  static constexpr std::size_t kBytes = 2;
  static MEMDECAY_INLINE __m256 load(const std::byte* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
};

/// total[p][c] += panels times columns over at most kFloatPass inputs. `panels` points at the
/// first input of the pass in the first panel.
template <class W, int kPanels, int kColumns>
MEMDECAY_NOINLINE void float_pass(const std::byte* panels, std::size_t panel_bytes, const float* x,
                                  std::ptrdiff_t ld_x, int inputs, float* const* total,
                                  bool first) {
  __m256 acc[extent(kPanels)][2][extent(kColumns)];
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      acc[p][0][c] = _mm256_setzero_ps();
      acc[p][1][c] = _mm256_setzero_ps();
    }
  }
  const std::byte* weights = panels;
  for (int i = 0; i < inputs; ++i) {
    MEMDECAY_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* from = weights + static_cast<std::size_t>(p) * panel_bytes;
      const __m256 w0 = W::load(from), w1 = W::load(from + 8 * W::kBytes);
      MEMDECAY_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        const __m256 v = _mm256_set1_ps(x[c * ld_x + i]);
        acc[p][0][c] = _mm256_fmadd_ps(w0, v, acc[p][0][c]);
        acc[p][1][c] = _mm256_fmadd_ps(w1, v, acc[p][1][c]);
      }
    }
    weights += kPanelRows * W::kBytes;
  }
  MEMDECAY_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      MEMDECAY_UNROLL
      for (int h = 0; h < 2; ++h) {
        float* to = total[p] + c * kPanelRows + 8 * h;
        _mm256_store_ps(to, first ? acc[p][h][c] : _mm256_add_ps(_mm256_load_ps(to), acc[p][h][c]));
      }
    }
  }
}

}  // namespace memdecay::avx2

#include "kernels/target_end.h"
