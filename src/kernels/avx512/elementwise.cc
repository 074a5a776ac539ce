// The small kernels for avx512: the generic ones over avx512/lanes.h.
#if !defined(__clang__)
// GCC 12 takes the undefined operand inside _mm512_max_ps and others for a mistake (GCC bug
// 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/avx512/table.h"
#include "kernels/top_k_heap.h"
#include "kernels/unroll.h"

#include "kernels/target_avx512.h"  // from here on functions are compiled for avx512

#include "kernels/avx512/lanes.h"
#include "kernels/generic/elementwise.h"
#include "kernels/generic/exp2.h"

#include "kernels/target_end.h"

namespace memdecay::avx512 {

void add_elementwise(KernelTable& table) {
  fill_elementwise<Lanes>(table);
}

}  // namespace memdecay::avx512
