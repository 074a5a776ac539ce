// The parts of the avx512 kernel table: each fills in the fields of its own file.
#pragma once

#include "kernels/kernel_table.h"

namespace memdecay::avx512 {

/// Whether this processor runs the table.
bool supported();
void add_matmul(KernelTable& table);
void add_attention(KernelTable& table);
void add_elementwise(KernelTable& table);

}  // namespace memdecay::avx512
