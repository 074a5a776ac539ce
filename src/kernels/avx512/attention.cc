#include "kernels/avx512/table.h"

namespace memdecay::avx512 {

void add_attention(KernelTable&) {}

}  // namespace memdecay::avx512
