#include "kernels/avx2/table.h"

namespace memdecay::avx2 {

void add_elementwise(KernelTable&) {}

}  // namespace memdecay::avx2
