#include "kernels/matmul_activations.h"

namespace memdecay {

std::size_t matmul_activation_bytes(int k, int cols) {
  return ActivationLayout(k).column_bytes * static_cast<std::size_t>(cols);
}

}  // namespace memdecay
