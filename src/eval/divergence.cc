#include "eval/divergence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace memdecay {

void Divergence::add(std::span<const float> base_log_probs, std::span<const double> log_probs,
                     float floor) {
  MEMDECAY_CHECK(base_log_probs.size() == log_probs.size() && !log_probs.empty());
  double kl = 0.0;
  std::size_t base_top = 0, top = 0;
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    const double base = base_log_probs[i];
    if (base_log_probs[i] > floor) kl += std::exp(base) * (base - log_probs[i]);
    if (base_log_probs[i] > base_log_probs[base_top]) base_top = i;
    if (log_probs[i] > log_probs[top]) top = i;
  }
  kl_.push_back(kl);
  same_top_ += base_top == top ? 1 : 0;
}

double Divergence::mean_kl() const {
  return kl_.empty()
             ? 0.0
             : std::accumulate(kl_.begin(), kl_.end(), 0.0) / static_cast<double>(kl_.size());
}

double Divergence::quantile_kl(double q) const {
  MEMDECAY_CHECK(!kl_.empty() && q >= 0.0 && q <= 1.0);
  std::vector<double> sorted = kl_;
  std::sort(sorted.begin(), sorted.end());
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double Divergence::max_kl() const {
  return kl_.empty() ? 0.0 : *std::max_element(kl_.begin(), kl_.end());
}

double Divergence::same_top() const {
  return kl_.empty() ? 0.0 : static_cast<double>(same_top_) / static_cast<double>(kl_.size());
}

}  // namespace memdecay
