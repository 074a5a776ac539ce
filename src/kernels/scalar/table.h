// The parts of the scalar kernel table: each fills in the fields of its own file.
#pragma once

#include "kernels/kernel_table.h"

namespace memdecay::scalar {

void add_matmul(KernelTable& table);
void add_attention(KernelTable& table);
void add_elementwise(KernelTable& table);

}  // namespace memdecay::scalar
