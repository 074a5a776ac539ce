#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/avx2/table.h"
#include "kernels/avx512/table.h"
#include "kernels/kernel_table.h"
#include "kernels/scalar/table.h"

namespace memdecay {
namespace {

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
    if (avx2::supported()) {
      avx2.name = "avx2";
      avx2::add_matmul(avx2);
      avx2::add_attention(avx2);
      avx2::add_elementwise(avx2);
      supported[count++] = &avx2;
    }
    if (avx512::supported()) {
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

/// The table that MEMDECAY_KERNELS names; null where it names none, or is not set.
const KernelTable* wanted_kernels() {
  const char* wanted = std::getenv("MEMDECAY_KERNELS");
  for (const KernelTable* table : supported_kernels()) {
    if (wanted != nullptr && std::strcmp(wanted, table->name) == 0) return table;
  }
  return nullptr;
}

}  // namespace

const KernelTable& scalar_kernels() {
  return tables().scalar;
}

std::span<const KernelTable* const> supported_kernels() {
  return {tables().supported.data(), tables().count};
}

const KernelTable& best_kernels() {
  const KernelTable* const wanted = wanted_kernels();
  return wanted != nullptr ? *wanted : *supported_kernels().back();
}

Status check_kernels_variable() {
  const char* const wanted = std::getenv("MEMDECAY_KERNELS");
  if (wanted == nullptr || *wanted == '\0' || wanted_kernels() != nullptr) return Status();
  std::string names;
  for (const KernelTable* table : supported_kernels())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", table->name);
  return make_status(StatusCode::kInvalidArgument,
                     "MEMDECAY_KERNELS=\"{}\" names no kernels; this processor can run {}", wanted,
                     names);
}

}  // namespace memdecay
