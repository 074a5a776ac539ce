#include <array>
#include <cstdlib>
#include <cstring>

#include "kernels/avx2/table.h"
#include "kernels/avx512/table.h"
#include "kernels/kernel_table.h"
#include "kernels/scalar/table.h"

namespace memdecay {
namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("f16c") != 0;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vnni") != 0;
}

/// The supported tables, built once.
struct Tables {
  KernelTable scalar, avx2, avx512;
  std::array<const KernelTable*, 3> supported{};
  std::size_t count = 0;

  Tables() {
    scalar.name = "scalar";
    scalar::add_matmul(scalar);
    scalar::add_attention(scalar);
    scalar::add_elementwise(scalar);
    supported[count++] = &scalar;
    if (has_avx2()) {
      avx2.name = "avx2";
      avx2::add_matmul(avx2);
      avx2::add_attention(avx2);
      avx2::add_elementwise(avx2);
      supported[count++] = &avx2;
    }
    if (has_avx512()) {
      avx512.name = "avx512";
      avx512::add_matmul(avx512);
      avx512::add_attention(avx512);
      avx512::add_elementwise(avx512);
      supported[count++] = &avx512;
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

const KernelTable& scalar_kernels() {
  return tables().scalar;
}

std::span<const KernelTable* const> supported_kernels() {
  return {tables().supported.data(), tables().count};
}

const KernelTable& best_kernels() {
  const char* wanted = std::getenv("MEMDECAY_KERNELS");
  for (const KernelTable* table : supported_kernels()) {
    if (wanted != nullptr && std::strcmp(wanted, table->name) == 0) return *table;
  }
  return *supported_kernels().back();
}

}  // namespace memdecay
