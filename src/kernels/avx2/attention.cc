#include "kernels/avx2/table.h"

namespace memdecay::avx2 {

void add_attention(KernelTable&) {}

}  // namespace memdecay::avx2
