#include "model/transformer/rope_angles.h"

#include <cmath>

namespace memdecay {

RopeAngles::RopeAngles(const ModelConfig& config, std::span<const float> divisors)
    : pairs_(config.rope.dimensions / 2) {
  sets_.push_back({rope_frequencies(config.rope, divisors), config.rope.magnitude()});
  if (config.sliding_window > 0) {
    sets_.push_back({rope_frequencies(config.local_rope, {}), config.local_rope.magnitude()});
  }
}

void RopeAngles::compute(std::span<const Position> virtual_places,
                         std::span<const Position> positions) {
  rows_ = positions.size();
  const std::size_t size = sets_.size() * rows_ * static_cast<std::size_t>(pairs_);
  cos_.resize(size);
  sin_.resize(size);
  std::size_t at = 0;
  for (const Set& set : sets_) {
    for (const Position position : &set == &sets_[0] ? virtual_places : positions) {
      for (const double frequency : set.frequencies) {
        const double angle = frequency * position;
        cos_[at] = static_cast<float>(set.magnitude * std::cos(angle));
        sin_[at] = static_cast<float>(set.magnitude * std::sin(angle));
        ++at;
      }
    }
  }
}

}  // namespace memdecay
