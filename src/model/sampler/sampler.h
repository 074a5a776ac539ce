// Sampler: the next token from logits, by temperature and truncation, repeatable by its seed.
//
// The steps and their defaults are those of llama.cpp, so that flags carry over: keep the top_k
// largest, then the fewest whose probabilities reach top_p (Holtzman et al. 2020), then those with
// at least min_p times the largest probability, then draw at the temperature. Temperature <= 0
// takes the largest logit (lowest id on a tie) and draws nothing.
//
// The vocabulary is never sorted: candidates come from KernelTable::top_k; without a top_k limit
// their number doubles until they hold the top_p mass, and with no truncation at all the draw walks
// the distribution once. Not thread-safe; one per request. Equal seeds, options and logits give
// equal tokens on every machine with equal logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/id.h"
#include "core/status.h"
#include "kernels/kernel_table.h"

namespace memdecay {

struct SamplingOptions {
  float temperature = 0.8F;
  int top_k = 40;       ///< 0: no limit
  float top_p = 0.95F;  ///< 1: no limit
  float min_p = 0.05F;  ///< 0: no limit
  std::uint64_t seed = 0;

  /// kInvalidArgument names the field that is out of range.
  Status validate() const;
};

class Sampler {
 public:
  /// REQUIRES: options.validate().ok().
  Sampler(const SamplingOptions& options, const KernelTable& kernels);

  /// REQUIRES: logits is not empty.
  TokenId sample(std::span<const float> logits);

 private:
  TokenId largest(std::span<const float> logits);
  TokenId draw_from_all(std::span<const float> logits);
  /// Fills candidates_ and probabilities_ (sum of kept = total returned).
  double choose_candidates(std::span<const float> logits);
  void take_top(std::span<const float> logits, int count);
  double uniform();

  SamplingOptions options_;
  const KernelTable& kernels_;
  std::mt19937_64 random_;
  std::vector<std::int32_t> candidates_;
  std::vector<float> values_;
  std::vector<double> probabilities_;
};

}  // namespace memdecay
