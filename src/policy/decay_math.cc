#include "policy/decay_math.h"

#include <cmath>
#include <limits>

#include "core/check.h"

namespace memdecay {

double decay_for_survival(double initial, double survival_steps, double threshold) {
  MEMDECAY_CHECK(threshold > 0 && initial > threshold && survival_steps > 0);
  return std::log(initial / threshold) / survival_steps;
}

double survival_for_decay(double initial, double decay, double threshold) {
  MEMDECAY_CHECK(threshold > 0 && initial > threshold && decay >= 0);
  if (decay == 0) return std::numeric_limits<double>::infinity();
  return std::log(initial / threshold) / decay;
}

double access_bonus(std::int64_t accesses) {
  return 0.1 * std::log1p(static_cast<double>(accesses));
}

double classic_score(double initial, double decay, double age_steps, std::int64_t accesses) {
  return initial * std::exp(-decay * age_steps) * (1 + access_bonus(accesses));
}

}  // namespace memdecay
