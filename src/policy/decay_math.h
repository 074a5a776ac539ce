// Decay math: how long a score survives, and the decay factor for a wished survival (A5).
//
//   score(age) = initial * exp(-decay * age)        survival = ln(initial / threshold) / decay
//
// Pure functions, any thread. Steps are tokens here and everywhere in the policy.
#pragma once

#include <cstdint>

namespace memdecay {

inline constexpr double kDecayThreshold = 0.1;

/// Decay per step with which `initial` falls to `threshold` in `survival_steps`; 0 (no decay) for
/// infinite survival. REQUIRES: initial > threshold > 0, survival_steps > 0.
double decay_for_survival(double initial, double survival_steps,
                          double threshold = kDecayThreshold);
/// The inverse; infinite for decay 0. REQUIRES: initial > threshold > 0, decay >= 0.
double survival_for_decay(double initial, double decay, double threshold = kDecayThreshold);
/// What accesses add to the classic score: 0.1 * ln(1 + accesses) of it.
double access_bonus(std::int64_t accesses);
/// initial * exp(-decay * age) * (1 + access_bonus): the classic score (A3).
double classic_score(double initial, double decay, double age_steps, std::int64_t accesses);

}  // namespace memdecay
