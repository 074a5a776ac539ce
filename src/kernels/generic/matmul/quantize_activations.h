// quantize_activations over vectors: the rounding of matmul_activations.h, byte for byte.
//
// Included inside a target region.
#pragma once

#include "kernels/generic/matmul/quantize_columns.h"

namespace memdecay {
namespace {

template <class L>
void quantize_block(const float* x, std::size_t block, const ActivationColumn& column) {
  constexpr int kVectors = kActivationBlock / L::kWidth;
  typename L::Floats v[extent(kVectors)];
  MEMDECAY_UNROLL
  for (int i = 0; i < kVectors; ++i) v[i] = L::load(x + i * L::kWidth);
  typename L::Floats largest = L::abs(v[0]);
  MEMDECAY_UNROLL
  for (int i = 1; i < kVectors; ++i) largest = L::max(largest, L::abs(v[i]));
  const float amax = L::max_lane(largest);
  const bool zero = !(amax >= kSmallestAmax);
  const typename L::Floats inverse = L::set(zero ? 0 : 127 / amax);
  typename L::Words q[extent(kVectors)];
  MEMDECAY_UNROLL
  for (int i = 0; i < kVectors; ++i) q[i] = L::to_ints(L::mul(v[i], inverse));
  L::store_bytes(column.codes + block * kActivationBlock, q);
  std::int32_t sums[2];
  MEMDECAY_UNROLL
  for (int half = 0; half < 2; ++half) {
    typename L::Words sum = q[half * kVectors / 2];
    MEMDECAY_UNROLL
    for (int i = 1; i < kVectors / 2; ++i) sum = L::add_words(sum, q[half * kVectors / 2 + i]);
    sums[half] = L::sum_words(sum);
  }
  column.set_scale(block, zero ? 0 : amax / 127, sums);
}

template <class L>
void quantize_activations(const QuantizeActivationsArgs& args) {
  quantize_columns(args, quantize_block<L>);
}

}  // namespace
}  // namespace memdecay
