// Arguments of the small kernels around matmul and attention. All arrays are fp32 and need no
// alignment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memdecay {

/// out = x / sqrt(mean(x^2) + epsilon) * weight, over n values (Zhang and Sennrich 2019). out may
/// be x.
struct RmsNormArgs {
  const float* x = nullptr;
  const float* weight = nullptr;
  float* out = nullptr;
  int n = 0;
  float epsilon = 0;
};

enum class RopePairing : std::uint8_t {
  kInterleaved,  ///< pairs (0,1), (2,3), ...: GGUF "NORM", llama files
  kHalves,       ///< pairs (0,n/2), (1,n/2+1), ...: GGUF "NEOX", qwen and gemma files
};

/// Rotates the first 2 * pairs values of each head in place (Su et al. 2021) and scales all of the
/// head's values.
struct RopeArgs {
  float* x = nullptr;  ///< [heads][head_dim]
  int heads = 0;
  int head_dim = 0;
  int pairs = 0;  ///< 2 * pairs <= head_dim
  RopePairing pairing = RopePairing::kInterleaved;
  const float* cos = nullptr;  ///< [pairs], of this token's position
  const float* sin = nullptr;  ///< [pairs]
  float scale = 1;  ///< applied to every value after the rotation (q: 1/sqrt(head_dim) * log2 e)
};

/// out = activation(gate) * up over n values; out may be gate or up.
struct GatedArgs {
  const float* gate = nullptr;
  const float* up = nullptr;
  float* out = nullptr;
  std::size_t n = 0;
};

/// The k largest of n logits, largest first, ties by lower index; no sort of the whole array.
struct TopKArgs {
  const float* x = nullptr;
  int n = 0;
  int k = 0;                      ///< 1 <= k <= n
  std::int32_t* index = nullptr;  ///< out [k]
  float* value = nullptr;         ///< out [k]
};

}  // namespace memdecay
