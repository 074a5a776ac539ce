#include "kernels/avx2/table.h"

namespace memdecay::avx2 {

void add_matmul(KernelTable&) {}

}  // namespace memdecay::avx2
