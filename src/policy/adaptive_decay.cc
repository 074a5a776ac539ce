#include "policy/adaptive_decay.h"

#include <algorithm>
#include <cmath>

namespace memdecay {

void AdaptiveDecay::observe(std::int64_t tokens, double seconds) {
  if (!options_.enabled) return;
  waiting_tokens_ += tokens;
  if (!(seconds > 0) || (!seen_ && waiting_tokens_ == 0)) return;
  const double now = static_cast<double>(waiting_tokens_) / seconds;
  waiting_tokens_ = 0;
  const double keep = seen_ ? std::exp(-seconds / options_.time_constant_s) : 0.0;
  rate_ = keep * rate_ + (1 - keep) * now;
  seen_ = true;
  const double wanted = std::pow(rate_ / options_.reference_tokens_per_s, options_.exponent);
  factor_ = std::clamp(wanted, options_.slowest, options_.fastest);
}

}  // namespace memdecay
