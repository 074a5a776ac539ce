#include "kernels/scalar/table.h"

namespace memdecay::scalar {

void add_matmul(KernelTable&) {}

}  // namespace memdecay::scalar
