// DotQueue: dot products in fp32, whose lanes are added up eight at a time.
//
// A product has 16 lanes whatever the width of vectors, and a tree of fixed shape joins them: the
// same bits in both vector tables. Included inside a target region.
#pragma once

#include "kernels/generic/attention/softmax_tile.h"

namespace memdecay {
namespace {

/// A dot product in 16 lanes.
template <typename L>
struct DotProduct {
  static constexpr int kParts = 16 / L::kWidth;
  typename L::Floats lanes[std::size_t{kParts}];

  MEMDECAY_INLINE DotProduct() {
    MEMDECAY_UNROLL
    for (int i = 0; i < kParts; ++i) lanes[i] = L::zero();
  }
  /// a0 * b0, then a1 * b1 behind it.
  MEMDECAY_INLINE void add(typename L::Floats a0, typename L::Floats b0, typename L::Floats a1,
                           typename L::Floats b1) {
    lanes[0] = L::fma(a0, b0, lanes[0]);
    lanes[kParts - 1] = L::fma(a1, b1, lanes[kParts - 1]);
  }
};

/// Adds up the lanes of eight dot products at once. Results go to consecutive places.
template <typename L>
class DotQueue {
 public:
  DotQueue(float* partial, float* results) : partial_(partial), results_(results) {}
  /// Of the next result.
  int place() const { return place_ + count_; }
  MEMDECAY_INLINE void push(const DotProduct<L>& sum) {
    MEMDECAY_UNROLL
    for (int i = 0; i < DotProduct<L>::kParts; ++i) {
      L::store(partial_ + count_ * 16 + i * L::kWidth, sum.lanes[i]);
    }
    if (++count_ == 8) flush();
  }
  /// Overwrites up to 7 places past the last.
  MEMDECAY_INLINE void flush() {
    if (count_ == 0) return;
    _mm256_storeu_ps(results_ + place_, sum_sixteens<L>(partial_));
    place_ += count_;
    count_ = 0;
  }

 private:
  float* partial_;  ///< [8][16]
  float* results_;
  int place_ = 0;
  int count_ = 0;
};

}  // namespace
}  // namespace memdecay
