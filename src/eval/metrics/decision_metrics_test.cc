#include "eval/metrics/decision_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace memdecay {
namespace {

/// Logits whose softmax is these probabilities.
std::vector<float> logits_of(std::vector<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + 3.0));
  return logits;
}

double metric(const nlohmann::ordered_json& json, const char* name, const char* what = "value") {
  return json.at(name).at(what).get<double>();
}

/// Positions 10 to 15; the target is always token 0. full: right except at 12; the policy loses 11
/// and finds 12.
DecisionMetrics six_positions() {
  DecisionMetrics metrics;
  const std::vector<float> right = logits_of({0.5, 0.25, 0.25}),
                           wrong = logits_of({0.25, 0.5, 0.25});
  for (std::int32_t position = 10; position < 16; ++position) {
    const bool base_right = position != 12, ours_right = position != 11;
    metrics.add(position, position < 13 ? 0 : 2, 0, base_right ? right : wrong,
                ours_right ? right : wrong);
  }
  return metrics;
}

TEST(DecisionMetrics, DivergenceAndFlipsPerEpisode) {
  const std::vector<EpisodeScores> episodes = six_positions().episodes();
  ASSERT_EQ(episodes.size(), 3U);
  const double kl = 0.5 * std::log(2.0) + 0.25 * std::log(0.5);  // between right and wrong
  ASSERT_EQ(episodes[0].kl.size(), 3U);
  EXPECT_NEAR(episodes[0].kl[0], 0, 1e-6);
  EXPECT_NEAR(episodes[0].kl[1], kl, 1e-6);
  EXPECT_NEAR(episodes[0].kl[2], kl, 1e-6);
  EXPECT_EQ(episodes[0].flips, 2);
  EXPECT_TRUE(episodes[1].kl.empty());
  EXPECT_EQ(episodes[2].flips, 0);
  const nlohmann::ordered_json json = decision_metrics_json(episodes);
  EXPECT_NEAR(metric(json, "mean_kl"), kl / 3, 1e-6);
  EXPECT_NEAR(metric(json, "mean_kl", "n"), 2, 0);
  EXPECT_NEAR(metric(json, "flips_per_1000"), 1000.0 / 3, 1e-9);
  EXPECT_NEAR(metric(json, "p99_kl"), kl, 1e-6);
  EXPECT_TRUE(json.at("value_match").at("value").is_null());
}

TEST(DecisionMetrics, ItemsCountOnlyWhereTheFullCacheIsRight) {
  DecisionMetrics metrics = six_positions();
  metrics.add_piece(ActionPart::kRecalled, {10, 13}, 0);       // the full cache misses 12
  metrics.add_piece(ActionPart::kRecalled, {13, 15}, 2);       // all right
  metrics.add_piece(ActionPart::kArgumentValue, {10, 12}, 0);  // the policy loses 11
  metrics.add_piece(ActionPart::kArgumentValue, {13, 16}, 2);
  metrics.add_piece(ActionPart::kToolName, {15, 17}, 2);  // 16 was never scored
  metrics.add_piece(ActionPart::kToolName, {9, 11}, 0);   // nor 9
  metrics.add_piece(ActionPart::kArgumentKey, {14, 14}, 2);
  const nlohmann::ordered_json json = decision_metrics_json(metrics.episodes());
  EXPECT_NEAR(metric(json, "value_match"), 3.0 / 4.0, 1e-12);  // 10, 13 and 14 of 10, 11, 13, 14
  EXPECT_NEAR(metric(json, "value_exact"), 1.0, 1e-12);        // of the one that was right
  EXPECT_NEAR(metric(json, "argument_value_exact"), 0.5, 1e-12);
  EXPECT_TRUE(json.at("tool_name_exact").at("value").is_null());
  EXPECT_TRUE(json.at("argument_key_exact").at("value").is_null());
  EXPECT_NEAR(metric(json, "argument_value_log_prob"), (4 * std::log(0.5) + std::log(0.25)) / 5,
              1e-6);
  EXPECT_NEAR(metric(json, "argument_value_log_prob_full"), std::log(0.5), 1e-6);
}

TEST(DecisionMetrics, StoredLogProbabilitiesOfTheFullCacheServeAsWell) {
  DecisionMetrics direct, stored;
  const std::vector<double> base = {0.6, 0.3, 0.1};
  const std::vector<float> ours = logits_of({0.2, 0.7, 0.1});
  direct.add(5, 0, 1, logits_of(base), ours);
  std::vector<float> log_probs;
  for (const double p : base) log_probs.push_back(static_cast<float>(std::log(p)));
  stored.add_log_probs(5, 0, 1, log_probs, ours, -16.0F);
  EXPECT_NEAR(direct.episodes()[0].kl[0], stored.episodes()[0].kl[0], 1e-6);
  EXPECT_NEAR(direct.episodes()[0].kl[0], 0.6 * std::log(3.0) + 0.3 * std::log(3.0 / 7.0), 1e-6);
  EXPECT_EQ(direct.positions(), 1U);
}

}  // namespace
}  // namespace memdecay
