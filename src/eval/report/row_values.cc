#include "eval/report/row_values.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "eval/metrics/bootstrap.h"
#include "eval/metrics/decision_metrics.h"

namespace memdecay {
namespace {

/// Means over the sessions that have the region.
std::map<std::string, double> mean_kept(std::span<const CellScores> sessions) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const CellScores& session : sessions) {
    for (const auto& [region, share] : session.kept) {
      sums[region].first += share;
      ++sums[region].second;
    }
  }
  std::map<std::string, double> means;
  for (const auto& [region, sum] : sums) means[region] = sum.first / sum.second;
  return means;
}

/// region -> [[age, share still kept], ...], with a last point at the greatest age.
nlohmann::ordered_json survival_json(std::span<const CellScores> sessions) {
  std::map<std::string, std::vector<LifeCount>> lives;
  for (const CellScores& session : sessions)
    for (const auto& [region, counts] : session.lives)
      lives[region].insert(lives[region].end(), counts.begin(), counts.end());
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [region, counts] : lives) {
    const SurvivalCurve curve = survival_curve(counts);
    for (const SurvivalPoint& point : curve.points)
      json[region].push_back({point.steps, point.share});
    std::int64_t oldest = 0;
    for (const LifeCount& count : counts) oldest = std::max(oldest, count.steps);
    if (static_cast<double>(oldest) > curve.points.back().steps)
      json[region].push_back({static_cast<double>(oldest), curve.points.back().share});
  }
  return json;
}

/// What steps cost, by the number of turns before them and over all; nothing where none was timed.
nlohmann::ordered_json latency_json(std::span<const CellScores> sessions) {
  std::map<std::int32_t, std::vector<double>> by_turn;
  std::vector<double> all;
  for (const CellScores& session : sessions) {
    for (const StepSample& step : session.steps) {
      by_turn[step.turn].push_back(step.ms);
      all.push_back(step.ms);
    }
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (all.empty()) return json;
  for (const auto& [turn, ms] : by_turn)
    json["latency_by_turn_ms"].push_back({turn, quantile_of(ms, 0.5)});
  json["latency_ms_p50"] = quantile_of(all, 0.5);
  json["latency_ms_p95"] = quantile_of(all, 0.95);
  json["latency_ms_p99"] = quantile_of(all, 0.99);
  return json;
}

/// Mean over the sessions where it was measured.
nlohmann::ordered_json eviction_json(std::span<const CellScores> sessions) {
  double sum = 0;
  int measured = 0;
  for (const CellScores& session : sessions) {
    if (!session.eviction_ms_per_token.has_value()) continue;
    sum += *session.eviction_ms_per_token;
    ++measured;
  }
  if (measured == 0) return nlohmann::ordered_json::object();
  return {{"eviction_ms_per_token", sum / measured}};
}

}  // namespace

nlohmann::ordered_json row_values(std::span<const CellScores> sessions) {
  std::vector<EpisodeScores> episodes;
  std::vector<EpisodeSum> bytes;
  double peak_share = 0;
  std::int64_t evicted = 0;
  std::int64_t recomputed = 0;
  std::vector<std::vector<ProbeScore>> probes;
  for (const CellScores& session : sessions) {
    if (!session.probes.empty()) probes.push_back(session.probes);
    episodes.insert(episodes.end(), session.episodes.begin(), session.episodes.end());
    bytes.push_back({session.mean_bytes, 1});
    const auto full = static_cast<double>(std::max<std::uint64_t>(1, session.full_bytes));
    peak_share = std::max(peak_share, static_cast<double>(session.peak_bytes) / full);
    evicted += session.evicted_tokens;
    recomputed += session.recomputed_tokens;
  }
  nlohmann::ordered_json row = decision_metrics_json(episodes);
  row["kv_bytes"] = metric_json(bootstrap_ratio(bytes));
  row["peak_share_of_fp16"] = peak_share;
  row["evicted_tokens"] = evicted;
  row["tokens_computed_twice"] = recomputed;
  row["sessions"] = sessions.size();
  row["kept"] = mean_kept(sessions);
  row["survival"] = survival_json(sessions);
  row.update(latency_json(sessions));
  row.update(eviction_json(sessions));
  row.update(recall_json(probes));
  return row;
}

}  // namespace memdecay
