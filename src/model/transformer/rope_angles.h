// RopeAngles: cosines and sines of the rows of one pass, for each rotary base that the model uses.
//
// Frequencies come from gguf/rope_frequencies.h; angles are computed in double, so long positions
// keep their digits, and per pass (about 20 ns a pair), so that no table grows with the context.
// One writer, then many readers.
#pragma once

#include <span>
#include <vector>

#include "core/id.h"
#include "model/gguf/model_config.h"

namespace memdecay {

class RopeAngles {
 public:
  /// `divisors` is rope_freqs.weight or empty. Set 0 serves global layers, set 1 (if any) windowed
  /// layers.
  RopeAngles(const ModelConfig& config, std::span<const float> divisors);

  int pairs() const { return pairs_; }
  /// Rows of global layers turn by `virtual_places`, of windowed ones by `positions`; alike until
  /// gaps are closed. REQUIRES: as many of each.
  void compute(std::span<const Position> virtual_places, std::span<const Position> positions);
  /// [pairs] of one row of the last compute().
  const float* cos(int set, int row) const { return cos_.data() + offset(set, row); }
  const float* sin(int set, int row) const { return sin_.data() + offset(set, row); }

 private:
  std::size_t offset(int set, int row) const {
    return (static_cast<std::size_t>(set) * rows_ + static_cast<std::size_t>(row)) *
           static_cast<std::size_t>(pairs_);
  }

  int pairs_ = 0;
  std::size_t rows_ = 0;
  struct Set {
    std::vector<double> frequencies;  ///< [pairs], radians per position
    double magnitude;                 ///< scales the rotated values
  };
  std::vector<Set> sets_;
  std::vector<float> cos_, sin_;  ///< [sets][rows][pairs]
};

}  // namespace memdecay
