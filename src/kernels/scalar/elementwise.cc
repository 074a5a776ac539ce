#include "kernels/scalar/table.h"

namespace memdecay::scalar {

void add_elementwise(KernelTable&) {}

}  // namespace memdecay::scalar
