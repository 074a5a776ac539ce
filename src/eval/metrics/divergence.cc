#include "eval/metrics/divergence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "eval/metrics/bootstrap.h"

namespace memdecay {

PositionDivergence compare_position(std::span<const float> base_log_probs,
                                    std::span<const double> log_probs, float floor) {
  MEMDECAY_CHECK(base_log_probs.size() == log_probs.size() && !log_probs.empty());
  PositionDivergence found;
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    const double base = base_log_probs[i];
    if (base_log_probs[i] > floor) found.kl += std::exp(base) * (base - log_probs[i]);
    if (base_log_probs[i] > base_log_probs[found.base_top]) found.base_top = i;
    if (log_probs[i] > log_probs[found.top]) found.top = i;
  }
  return found;
}

void Divergence::add(std::span<const float> base_log_probs, std::span<const double> log_probs,
                     float floor) {
  const PositionDivergence position = compare_position(base_log_probs, log_probs, floor);
  kl_.push_back(position.kl);
  same_top_ += position.base_top == position.top ? 1 : 0;
}

double Divergence::mean_kl() const {
  return kl_.empty()
             ? 0.0
             : std::accumulate(kl_.begin(), kl_.end(), 0.0) / static_cast<double>(kl_.size());
}

double Divergence::quantile_kl(double q) const {
  MEMDECAY_CHECK(!kl_.empty());
  return quantile_of(kl_, q);
}

double Divergence::max_kl() const {
  return kl_.empty() ? 0.0 : *std::max_element(kl_.begin(), kl_.end());
}

double Divergence::same_top() const {
  return kl_.empty() ? 0.0 : static_cast<double>(same_top_) / static_cast<double>(kl_.size());
}

}  // namespace memdecay
