// Divergence: how far one engine's predictions are from another's, over many positions.
//
// Per position: KL(base || ours) = sum p_base (log p_base - log p_ours) in nats, whether both rank
// the same token first. Not thread-safe. Cost: O(vocabulary) a position; keeps one float a position
// for the quantiles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace memdecay {

/// One position: KL(base || ours), and which token each ranks first.
struct PositionDivergence {
  double kl = 0;
  std::size_t base_top = 0;
  std::size_t top = 0;
};

/// Log-probabilities of the base and of ours, equally long. Base entries at or below `floor` carry
/// no information (16-bit files flatten them) and are left out.
PositionDivergence compare_position(std::span<const float> base_log_probs,
                                    std::span<const double> log_probs, float floor);

class Divergence {
 public:
  /// The next position, as compare_position() takes it.
  void add(std::span<const float> base_log_probs, std::span<const double> log_probs, float floor);

  std::size_t positions() const { return kl_.size(); }
  double mean_kl() const;
  /// The q-quantile of the positions' KL, linear between neighbours. REQUIRES: positions() > 0, 0
  /// <= q <= 1.
  double quantile_kl(double q) const;
  double max_kl() const;
  /// Share of positions with the same first token.
  double same_top() const;

 private:
  std::vector<double> kl_;
  std::size_t same_top_ = 0;
};

}  // namespace memdecay
