// PhaseEvidence: what a page has been seen to matter, by who asked, on two clocks.
//
//   moving average: sum(w_p * num_p) / sum(w_p * den_p) over phases p, where each observation v
//   adds
//                   v to num_p and 1 to den_p, and both halve every half_life tokens
//   lasting:        sum(w_p * v), or (lasting_is_mean) that / sum(w_p); it never decays
//
// Decay is applied when something is observed, since it cancels out of the average in between.
// Plain values; O(1), no allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "policy/evidence.h"

namespace memdecay {

struct EvidenceOptions {
  double half_life_tokens = 1024;
  /// The assistant's own steps say four times as much (think, act, tool, other).
  std::array<double, kQueryPhaseCount> phase_weights = {4, 4, 1, 1};
  double lasting_share = 0.5;  ///< of the two clocks' logarithms
  bool lasting_is_mean = false;
};

class PhaseEvidence {
 public:
  /// `kept` is 0.5^(tokens since the last observation / half life).
  void observe(QueryPhase phase, double value, double kept) {
    for (double& part : value_) part *= kept;
    for (double& part : count_) part *= kept;
    const auto index = static_cast<std::size_t>(phase);
    value_[index] += value;
    count_[index] += 1;
    lasting_value_[index] += value;
    lasting_count_[index] += 1;
    seen_ = true;
  }
  bool seen() const { return seen_; }

  /// Takes `share` of what another page was seen to matter: evidence of parts adds up, as long as
  /// they were looked at alike. `kept` as above, of the other page until now; this one's own clock
  /// stands at now.
  void add(const PhaseEvidence& other, double share, double kept) {
    for (std::size_t i = 0; i < kQueryPhaseCount; ++i) {
      add_mean(value_[i], count_[i], share * other.value_[i] * kept, other.count_[i] * kept);
      add_mean(lasting_value_[i], lasting_count_[i], share * other.lasting_value_[i],
               other.lasting_count_[i]);
    }
    seen_ = seen_ || other.seen_;
  }

  double average(const EvidenceOptions& options) const {
    return weighted(value_, options) / weighted(count_, options);
  }
  double lasting(const EvidenceOptions& options) const {
    const double sum = weighted(lasting_value_, options);
    return options.lasting_is_mean ? sum / weighted(lasting_count_, options) : sum;
  }
  /// The two clocks mixed in the log domain. REQUIRES: seen().
  double log_level(const EvidenceOptions& options) const {
    constexpr double kSmallest = 1e-9;  // no evidence is not minus infinity
    return (1 - options.lasting_share) * std::log(average(options) + kSmallest) +
           options.lasting_share * std::log(lasting(options) + kSmallest);
  }

 private:
  using ByPhase = std::array<double, kQueryPhaseCount>;
  /// Adds means, over as many observations as the longer watched one has.
  static void add_mean(double& value, double& count, double more, double more_count) {
    const double most = std::max(count, more_count);
    if (most <= 0) return;
    const double mean = (count > 0 ? value / count : 0) + (more_count > 0 ? more / more_count : 0);
    value = mean * most;
    count = most;
  }
  static double weighted(const ByPhase& parts, const EvidenceOptions& options) {
    double sum = 0;
    for (std::size_t i = 0; i < kQueryPhaseCount; ++i) sum += options.phase_weights[i] * parts[i];
    return sum;
  }

  ByPhase value_ = {};
  ByPhase count_ = {};
  ByPhase lasting_value_ = {};
  ByPhase lasting_count_ = {};
  bool seen_ = false;
};

}  // namespace memdecay
