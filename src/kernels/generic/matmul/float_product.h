// Float weights (F32, F16, BF16) times float activations, fused multiply-adds in input order.
//
// Sums are kept per 256 inputs and then added up, for accuracy at large k, in the same order for
// one column and for many. Included inside a target region.
#pragma once

#include "kernels/generic/matmul/panel_vectors.h"

namespace memdecay {
namespace {

inline constexpr int kFloatPass = 256;

template <class L>
struct F32Weights {
  using Lanes = L;
  static constexpr std::size_t kBytes = 4;
  static MEMDECAY_INLINE typename L::Floats load(const std::byte* p) {
    return L::load(reinterpret_cast<const float*>(p));
  }
};

template <class L>
struct F16Weights {
  using Lanes = L;
  static constexpr std::size_t kBytes = 2;
  static MEMDECAY_INLINE typename L::Floats load(const std::byte* p) {
    return L::load_half(reinterpret_cast<const std::uint16_t*>(p));
  }
};

template <class L>
struct BF16Weights {
  using Lanes = L;
  static constexpr std::size_t kBytes = 2;
  static MEMDECAY_INLINE typename L::Floats load(const std::byte* p) {
    return L::load_bfloat(reinterpret_cast<const std::uint16_t*>(p));
  }
};

/// total[p][c] += panels times columns over at most kFloatPass inputs. `panels` points at the
/// first input of the pass in the first panel.
template <class W, int kPanels, int kColumns>
MEMDECAY_NOINLINE void float_pass(const std::byte* panels, std::size_t panel_bytes, const float* x,
                                  std::ptrdiff_t ld_x, int inputs, float* const* total,
                                  bool first) {
  using L = typename W::Lanes;
  // Vectors of rows of all panels.
  constexpr int kVectors = kPanels * kParts<L>;
  typename L::Floats acc[extent(kVectors)][extent(kColumns)];
  MEMDECAY_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) acc[v][c] = L::zero();
  }
  const std::byte* weights = panels;
  for (int i = 0; i < inputs; ++i) {
    typename L::Floats w[extent(kVectors)];
    MEMDECAY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      w[v] = W::load(weights + extent(v / kParts<L>) * panel_bytes +
                     extent(v % kParts<L> * L::kWidth) * W::kBytes);
    }
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const typename L::Floats factor = L::set(x[c * ld_x + i]);
      MEMDECAY_UNROLL
      for (int v = 0; v < kVectors; ++v) acc[v][c] = L::fma(w[v], factor, acc[v][c]);
    }
    weights += kPanelRows * W::kBytes;
  }
  MEMDECAY_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    MEMDECAY_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      float* to = total[v / kParts<L>] + c * kPanelRows + v % kParts<L> * L::kWidth;
      L::store(to, first ? acc[v][c] : L::add(L::load(to), acc[v][c]));
    }
  }
}

}  // namespace
}  // namespace memdecay
