// Decision metrics: what a policy's memory changes in what the model would do, position by
// position, against the full cache of the same engine.
//
// For each scored position both give the logits of the token that the recording has there. Kept
// per episode, so that intervals are drawn by episode: KL and its p99, flips (another token is
// ranked first), and for the pieces of actions (action_values.h) the log-probability and whether
// every token is ranked first. An item counts only where the full cache has it right:
//   value_match   tokens of recalled values that stay right / that the full cache has right
//   value_exact   the same of whole values; tool_name_exact, argument_key_exact and
//                 argument_value_exact likewise
// One object a session, fed in order of position; then decision_metrics_json over all sessions.
// Not thread-safe. Cost: two log-softmaxes a position.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/id.h"
#include "eval/metrics/action_values.h"
#include "eval/metrics/bootstrap.h"

namespace memdecay {

/// Sums over the pieces of one part in one episode.
struct PartSums {
  double pieces = 0;      ///< that were scored
  double base_exact = 0;  ///< every token right with the full cache
  double kept_exact = 0;  ///< and with the policy too
  double tokens = 0;
  double base_right = 0;  ///< tokens
  double kept_right = 0;
  double base_log_prob = 0;  ///< of all tokens
  double log_prob = 0;
};

struct EpisodeScores {
  std::vector<double> kl;  ///< [positions]
  double flips = 0;
  std::array<PartSums, kActionPartCount> parts;
};

class DecisionMetrics {
 public:
  /// Pieces that are scored once all their positions are in; `episode` numbers the session's
  /// episodes from 0.
  void add_piece(ActionPart part, TokenSpan tokens, std::int32_t episode);

  /// Logits that predict the token at `position`, which is `target`. REQUIRES: positions rise,
  /// equally many logits, target among them.
  void add(std::int32_t position, std::int32_t episode, TokenId target,
           std::span<const float> base_logits, std::span<const float> logits);
  /// The same with log-probabilities of the base from elsewhere; entries at or below `floor` carry
  /// no information.
  void add_log_probs(std::int32_t position, std::int32_t episode, TokenId target,
                     std::span<const float> base_log_probs, std::span<const float> logits,
                     float floor);

  std::size_t positions() const { return scores_.size(); }
  /// [episodes]; pieces of which a position is missing do not count.
  std::vector<EpisodeScores> episodes() const;

 private:
  struct PositionScore {
    std::int32_t position, episode;
    double kl;
    double base_log_prob, log_prob;
    bool flip, base_right, right;
  };
  struct Piece {
    ActionPart part;
    TokenSpan tokens;
    std::int32_t episode;
  };
  void add_to_part(const Piece& piece, PartSums& sums) const;

  std::vector<PositionScore> scores_;  ///< positions rise
  std::vector<Piece> pieces_;
  std::vector<double> log_probs_;
  std::vector<float> base_;
};

/// {"mean_kl": {...}, "p99_kl", "flips_per_1000", "value_match", "value_exact", "tool_name_exact",
/// "argument_key_exact", "argument_value_exact", "tool_name_log_prob",
/// "tool_name_log_prob_full", ...}: each a metric with its interval, log-probabilities a token.
nlohmann::ordered_json decision_metrics_json(std::span<const EpisodeScores> episodes,
                                             const BootstrapOptions& options = {});

}  // namespace memdecay
