#include "kernels/avx512/table.h"

namespace memdecay::avx512 {

void add_elementwise(KernelTable&) {}

}  // namespace memdecay::avx512
