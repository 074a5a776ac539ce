// Lane trees: the lanes of eight vectors joined at once, a vector's results side by side.
//
// A vector's 8 lanes join in one order: i with i + 4, then with i + 2, then with i + 1; of 16 lanes
// i joins with i + 8 before that. One reduction after another would make as many long chains, and
// scalars that a vector load must wait for. Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_tile.h"

namespace memdecay {
namespace {

// How lanes join. No lambdas: g++ compiles what turns one into a pointer outside the target region.
struct LargerLanes {
  MEMDECAY_INLINE __m256 operator()(__m256 a, __m256 b) const { return _mm256_max_ps(a, b); }
};
struct AddedLanes {
  MEMDECAY_INLINE __m256 operator()(__m256 a, __m256 b) const { return _mm256_add_ps(a, b); }
};

/// join(low, high) of lanes `low` below `high`, vector by vector.
template <typename Join>
MEMDECAY_INLINE __m256 join_lanes(const __m256 (&rows)[8], const Join& join) {
  __m256 four[4];
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    four[i] = join(_mm256_permute2f128_ps(rows[i], rows[i + 4], 0x20),
                   _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x31));
  }
  __m256d two[2];
  MEMDECAY_UNROLL
  for (int i = 0; i < 2; ++i) {
    two[i] = _mm256_castps_pd(join(_mm256_unpacklo_ps(four[2 * i], four[2 * i + 1]),
                                   _mm256_unpackhi_ps(four[2 * i], four[2 * i + 1])));
  }
  return join(_mm256_castpd_ps(_mm256_unpacklo_pd(two[0], two[1])),
              _mm256_castpd_ps(_mm256_unpackhi_pd(two[0], two[1])));
}

/// The largest of each row of x, [8][16], where none is a NaN.
MEMDECAY_INLINE __m256 most_of_sixteens(const float* x) {
  const LargerLanes larger;
  __m256 rows[8];
  MEMDECAY_UNROLL
  for (int i = 0; i < 8; ++i) {
    rows[i] = larger(_mm256_loadu_ps(x + 16 * i), _mm256_loadu_ps(x + 16 * i + 8));
  }
  return join_lanes(rows, larger);
}

}  // namespace
}  // namespace memdecay
