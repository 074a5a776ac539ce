// Attention for avx2: the generic kernels over avx2/lanes.h.
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/check.h"
#include "kernels/avx2/table.h"
#include "kernels/unroll.h"
#include "quant/half.h"

#include "kernels/target_avx2.h"  // from here on functions are compiled for avx2

#include "kernels/avx2/lanes.h"
#include "kernels/generic/attention/attention.h"

#include "kernels/target_end.h"

namespace memdecay::avx2 {

void add_attention(KernelTable& table) {
  fill_attention<Lanes>(table);
}

}  // namespace memdecay::avx2
