// AdaptiveDecay: dialogue decays faster when tokens come fast, slower when the agent waits (A7).
//
// It keeps a moving average of the token rate over time and answers with a factor for the decay of
// recent dialogue: (rate / reference)^exponent within [slowest, fastest]. It has no clock: seconds
// are given. Threads: one owner. O(1).
#pragma once

#include <cstdint>

namespace memdecay {

struct AdaptiveDecayOptions {
  bool enabled = true;
  double reference_tokens_per_s = 20.0;  ///< where the factor is 1
  double exponent = 0.5;
  double slowest = 0.5;
  double fastest = 2.0;
  double time_constant_s = 30.0;  ///< of the moving average
};

class AdaptiveDecay {
 public:
  explicit AdaptiveDecay(const AdaptiveDecayOptions& options = {}) : options_(options) {}

  /// Tokens that came in the `seconds` just passed. Where that is no time yet they wait for the
  /// next time that is; nothing is learnt from time before the first tokens.
  void observe(std::int64_t tokens, double seconds);
  /// 1 before the first observation, and always where it is switched off.
  double factor() const { return factor_; }

 private:
  AdaptiveDecayOptions options_;
  bool seen_ = false;
  std::int64_t waiting_tokens_ = 0;  ///< their time is not told yet
  double rate_ = 0;
  double factor_ = 1;
};

}  // namespace memdecay
