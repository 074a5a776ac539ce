#include "kernels/avx2/table.h"
#include "kernels/avx512/table.h"

namespace memdecay::avx512 {

bool supported() {
  return avx2::supported() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
}

}  // namespace memdecay::avx512
