#include "kernels/scalar/table.h"

namespace memdecay::scalar {

void add_attention(KernelTable&) {}

}  // namespace memdecay::scalar
