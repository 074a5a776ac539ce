// Matrix products for avx512: the generic kernels over avx512/lanes.h and avx512/matmul_products.h.
#if !defined(__clang__)
// GCC 12 takes undefined operands inside intrinsics for a mistake (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "kernels/avx512/table.h"
#include "kernels/matmul_activations.h"
#include "kernels/matmul_fetch.h"
#include "kernels/unroll.h"
#include "quant/panel_layout.h"

#include "kernels/target_avx512.h"  // from here on functions are compiled for avx512

#include "kernels/avx512/lanes.h"
#include "kernels/avx512/matmul_products.h"
#include "kernels/generic/matmul/matmul.h"

#include "kernels/target_end.h"

namespace memdecay::avx512 {

void add_matmul(KernelTable& table) {
  fill_matmul<Lanes, Products>(table);
}

}  // namespace memdecay::avx512
