#include "model/gguf/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace memdecay {
namespace {

/// The pair (as a real number) that turns `rotations` times within the original context.
double pair_of_rotations(const RopeParameters& rope, double rotations) {
  return rope.dimensions *
         std::log(rope.original_context_length / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

/// How much of each pair's frequency is divided: 0 for fast pairs, 1 for slow ones.
class YarnRamp {
 public:
  explicit YarnRamp(const RopeParameters& rope)
      : low_(std::max(std::floor(pair_of_rotations(rope, rope.yarn_beta_fast)), 0.0)),
        high_(std::min(std::ceil(pair_of_rotations(rope, rope.yarn_beta_slow)),
                       rope.dimensions - 1.0)) {
    if (low_ == high_) high_ += 0.001;  // the published method's guard against a division by zero
  }
  double at(double pair) const { return std::clamp((pair - low_) / (high_ - low_), 0.0, 1.0); }

 private:
  double low_;
  double high_;
};

}  // namespace

double RopeParameters::magnitude() const {
  return scaling == RopeScaling::kYarn && factor > 1 ? 0.1 * std::log(factor) + 1 : 1;
}

std::vector<double> rope_frequencies(const RopeParameters& rope, std::span<const float> divisors) {
  const auto pairs = static_cast<std::size_t>(rope.dimensions / 2);
  MEMDECAY_CHECK(divisors.empty() || divisors.size() == pairs);
  std::vector<double> frequencies(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto pair = static_cast<double>(i);
    double frequency = std::pow(rope.theta, -2 * pair / rope.dimensions);
    if (rope.scaling == RopeScaling::kLinear) frequency /= rope.factor;
    if (rope.scaling == RopeScaling::kYarn) {
      const double divided = YarnRamp(rope).at(pair);
      frequency *= divided / rope.factor + (1 - divided);
    }
    frequencies[i] = divisors.empty() ? frequency : frequency / static_cast<double>(divisors[i]);
  }
  return frequencies;
}

}  // namespace memdecay
