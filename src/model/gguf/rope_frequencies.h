// RopeParameters: how far RoPE turns a head's pairs of values per position, and the variants that
// stretch it to longer contexts.
//
// Pair i of n turns by position * frequency_i. Plain: frequency_i = theta^(-i / n) (Su et al.
// 2021). Linear scaling divides all by a factor (Chen et al. 2023). YaRN (Peng et al. 2023) divides
// slow pairs, keeps fast ones and blends between, and lengthens the rotated values by `magnitude`.
// Llama 3.1 and later bring a divisor per pair in the tensor rope_freqs.weight. Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace memdecay {

/// Which two values of a head turn together.
enum class RopeOrder : std::uint8_t {
  kInterleaved,  ///< (0, 1), (2, 3), ...: llama files
  kHalves,       ///< (0, n/2), (1, n/2 + 1), ...: qwen and gemma files
};

enum class RopeScaling : std::uint8_t { kNone, kLinear, kYarn };

struct RopeParameters {
  int dimensions = 0;  ///< the first values of a head that turn: even, at most head_dim
  RopeOrder order = RopeOrder::kInterleaved;
  double theta = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;                ///< of kLinear and kYarn: how many times longer, > 0
  int original_context_length = 0;  ///< of kYarn: what the model was trained on before
  double yarn_beta_fast = 32;
  double yarn_beta_slow = 1;
  /// The rotated queries and keys are multiplied by this; 1 but for kYarn.
  double magnitude() const;
};

/// The dimensions / 2 frequencies, in radians per position. `divisors` is rope_freqs.weight or
/// empty. REQUIRES: divisors.empty() or divisors.size() == dimensions / 2.
std::vector<double> rope_frequencies(const RopeParameters& rope, std::span<const float> divisors);

}  // namespace memdecay
