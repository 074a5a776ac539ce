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
  table.rms_norm = rms_norm<Lanes>;
  table.rope = rope<Lanes>;
  table.swiglu = gated<Lanes, silu<Lanes>>;
  table.geglu = gated<Lanes, gelu<Lanes>>;
  table.max_value = max_value<Lanes>;
  table.read_streams = read_streams<Lanes>;
  table.sum_exp = sum_exp<Lanes>;
  table.top_k = top_k<Lanes>;
}

}  // namespace memdecay::avx512
