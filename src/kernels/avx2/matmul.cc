#include "kernels/avx2/table.h"
#include "kernels/scalar/table.h"

namespace memdecay::avx2 {

void add_matmul(KernelTable& table) {
  scalar::add_matmul(table);
}

}  // namespace memdecay::avx2
