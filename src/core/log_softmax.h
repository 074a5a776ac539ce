// log_softmax: the logarithms of the probabilities that logits stand for. Pure, any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "core/check.h"

namespace memdecay {

/// ln of the sum of exp(logit), in double: a token's log-probability is its logit less this.
/// REQUIRES: at least one logit.
inline double log_sum_exp(std::span<const float> logits) {
  MEMDECAY_CHECK(!logits.empty());
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return std::log(sum) + most;
}

/// ln p of every logit. REQUIRES: as many `log_probs` as logits, at least one.
inline void log_softmax(std::span<const float> logits, std::span<double> log_probs) {
  MEMDECAY_CHECK(logits.size() == log_probs.size());
  const double log_sum = log_sum_exp(logits);
  for (std::size_t i = 0; i < logits.size(); ++i)
    log_probs[i] = static_cast<double>(logits[i]) - log_sum;
}

/// The same rounded to float; both may be the same memory.
inline void log_softmax(std::span<const float> logits, std::span<float> log_probs) {
  MEMDECAY_CHECK(logits.size() == log_probs.size());
  const double log_sum = log_sum_exp(logits);
  for (std::size_t i = 0; i < logits.size(); ++i)
    log_probs[i] = static_cast<float>(static_cast<double>(logits[i]) - log_sum);
}

}  // namespace memdecay
