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
  fill_elementwise<Lanes>(table);
}

}  // namespace memdecay::avx2
