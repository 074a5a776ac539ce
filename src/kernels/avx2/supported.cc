#include <cpuid.h>

#include "kernels/avx2/table.h"

namespace memdecay::avx2 {
namespace {

/// clang knows the name for __builtin_cpu_supports from version 17 on.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

bool supported() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c();
}

}  // namespace memdecay::avx2
