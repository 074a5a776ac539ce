#include "kernels/avx512/table.h"

namespace memdecay::avx512 {

void add_matmul(KernelTable&) {}

}  // namespace memdecay::avx512
