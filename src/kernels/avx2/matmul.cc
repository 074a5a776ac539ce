// Matrix products for avx2: the generic kernels over avx2/lanes.h and avx2/matmul_products.h.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "kernels/avx2/table.h"
#include "kernels/matmul_activations.h"
#include "kernels/matmul_fetch.h"
#include "kernels/unroll.h"
#include "quant/panel_layout.h"

#include "kernels/target_avx2.h"  // from here on functions are compiled for avx2

#include "kernels/avx2/lanes.h"
#include "kernels/avx2/matmul_products.h"
#include "kernels/generic/matmul/matmul.h"

#include "kernels/target_end.h"

namespace memdecay::avx2 {

void add_matmul(KernelTable& table) {
  fill_matmul<Lanes, Products>(table);
}

}  // namespace memdecay::avx2
