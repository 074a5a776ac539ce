// The small kernels for avx2: the generic ones over avx2/lanes.h.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/avx2/table.h"
#include "kernels/top_k_heap.h"
#include "kernels/unroll.h"

#include "kernels/target_avx2.h"  // from here on functions are compiled for avx2

#include "kernels/avx2/lanes.h"
#include "kernels/generic/elementwise.h"
#include "kernels/generic/exp2.h"

#include "kernels/target_end.h"

namespace memdecay::avx2 {

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

}  // namespace memdecay::avx2
