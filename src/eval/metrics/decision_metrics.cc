#include "eval/metrics/decision_metrics.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "core/check.h"
#include "core/log_softmax.h"
#include "eval/metrics/divergence.h"

namespace memdecay {
namespace {

template <typename Take>
Metric ratio_over(std::span<const EpisodeScores> episodes, const BootstrapOptions& options,
                  const Take& take) {
  std::vector<EpisodeSum> sums;
  sums.reserve(episodes.size());
  for (const EpisodeScores& episode : episodes) sums.push_back(take(episode));
  return bootstrap_ratio(sums, options);
}

}  // namespace

void DecisionMetrics::add_piece(ActionPart part, TokenSpan tokens, std::int32_t episode) {
  MEMDECAY_CHECK(episode >= 0 && tokens.begin <= tokens.end);
  pieces_.push_back({part, tokens, episode});
}

void DecisionMetrics::add(std::int32_t position, std::int32_t episode, TokenId target,
                          std::span<const float> base_logits, std::span<const float> logits) {
  base_.resize(base_logits.size());
  log_softmax(base_logits, base_);
  add_log_probs(position, episode, target, base_, logits, -std::numeric_limits<float>::infinity());
}

void DecisionMetrics::add_log_probs(std::int32_t position, std::int32_t episode, TokenId target,
                                    std::span<const float> base_log_probs,
                                    std::span<const float> logits, float floor) {
  MEMDECAY_CHECK(episode >= 0 && (scores_.empty() || scores_.back().position < position));
  const auto index = static_cast<std::size_t>(target);
  MEMDECAY_CHECK(index < logits.size());
  log_probs_.resize(logits.size());
  log_softmax(logits, log_probs_);
  const PositionDivergence found = compare_position(base_log_probs, log_probs_, floor);
  scores_.push_back({position, episode, found.kl, base_log_probs[index], log_probs_[index],
                     found.top != found.base_top, found.base_top == index, found.top == index});
}

void DecisionMetrics::add_to_part(const Piece& piece, PartSums& sums) const {
  const auto first = std::lower_bound(
      scores_.begin(), scores_.end(), piece.tokens.begin,
      [](const PositionScore& score, std::int32_t position) { return score.position < position; });
  const auto count = static_cast<std::ptrdiff_t>(piece.tokens.end - piece.tokens.begin);
  if (count == 0 || scores_.end() - first < count) return;
  const auto last = first + count;
  if (first->position != piece.tokens.begin || (last - 1)->position != piece.tokens.end - 1) return;
  const auto right = [](const PositionScore& score) { return score.right; };
  const auto base_right = [](const PositionScore& score) { return score.base_right; };
  const bool base_exact = std::all_of(first, last, base_right);
  sums.pieces += 1;
  sums.base_exact += base_exact ? 1 : 0;
  sums.kept_exact += base_exact && std::all_of(first, last, right) ? 1 : 0;
  for (auto score = first; score != last; ++score) {
    sums.tokens += 1;
    sums.base_right += score->base_right ? 1 : 0;
    sums.kept_right += score->base_right && score->right ? 1 : 0;
    sums.base_log_prob += score->base_log_prob;
    sums.log_prob += score->log_prob;
  }
}

std::vector<EpisodeScores> DecisionMetrics::episodes() const {
  std::int32_t count = 0;
  for (const PositionScore& score : scores_) count = std::max(count, score.episode + 1);
  for (const Piece& piece : pieces_) count = std::max(count, piece.episode + 1);
  std::vector<EpisodeScores> episodes(static_cast<std::size_t>(count));
  for (const PositionScore& score : scores_) {
    EpisodeScores& episode = episodes[static_cast<std::size_t>(score.episode)];
    episode.kl.push_back(score.kl);
    episode.flips += score.flip ? 1 : 0;
  }
  for (const Piece& piece : pieces_) {
    EpisodeScores& episode = episodes[static_cast<std::size_t>(piece.episode)];
    add_to_part(piece, episode.parts[static_cast<std::size_t>(piece.part)]);
  }
  return episodes;
}

nlohmann::ordered_json decision_metrics_json(std::span<const EpisodeScores> episodes,
                                             const BootstrapOptions& options) {
  nlohmann::ordered_json json;
  const auto put = [&](const std::string& name, const auto& take) {
    json[name] = metric_json(ratio_over(episodes, options, take));
  };
  put("mean_kl", [](const EpisodeScores& episode) {
    return EpisodeSum{std::accumulate(episode.kl.begin(), episode.kl.end(), 0.0),
                      static_cast<double>(episode.kl.size())};
  });
  std::vector<std::vector<double>> kl;
  for (const EpisodeScores& episode : episodes) kl.push_back(episode.kl);
  json["p99_kl"] = metric_json(bootstrap_quantile(kl, 0.99, options));
  put("flips_per_1000", [](const EpisodeScores& episode) {
    return EpisodeSum{1000.0 * episode.flips, static_cast<double>(episode.kl.size())};
  });
  const auto& recalled = [](const EpisodeScores& episode) -> const PartSums& {
    return episode.parts[static_cast<std::size_t>(ActionPart::kRecalled)];
  };
  put("value_match", [&](const EpisodeScores& episode) {
    return EpisodeSum{recalled(episode).kept_right, recalled(episode).base_right};
  });
  for (std::size_t part = 0; part < kActionPartCount; ++part) {
    const auto kind = static_cast<ActionPart>(part);
    const std::string name = kind == ActionPart::kRecalled ? "value" : action_part_name(kind);
    put(name + "_exact", [part](const EpisodeScores& episode) {
      return EpisodeSum{episode.parts[part].kept_exact, episode.parts[part].base_exact};
    });
    put(name + "_log_prob", [part](const EpisodeScores& episode) {
      return EpisodeSum{episode.parts[part].log_prob, episode.parts[part].tokens};
    });
    put(name + "_log_prob_full", [part](const EpisodeScores& episode) {
      return EpisodeSum{episode.parts[part].base_log_prob, episode.parts[part].tokens};
    });
  }
  return json;
}

}  // namespace memdecay
