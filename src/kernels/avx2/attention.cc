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
#include "kernels/generic/attention/merge_attention.h"
#include "kernels/generic/attention/store_kv.h"

#include "kernels/target_end.h"

namespace memdecay::avx2 {

void add_attention(KernelTable& table) {
  table.attention_scratch_bytes = attention_scratch_bytes<Lanes>;
  table.attention = attention<Lanes>;
  table.merge_attention = merge_attention<Lanes>;
  table.store_kv = store_kv;
}

}  // namespace memdecay::avx2
