#include "eval/report/cell_scores.h"

#include <cmath>

namespace memdecay {
namespace {

using nlohmann::ordered_json;

constexpr double kKlSteps = 1e9;
constexpr double kMsSteps = 1e6;

double rounded(double value, double steps) {
  return std::round(value * steps) / steps;
}

ordered_json part_json(const PartSums& part) {
  return {part.pieces,     part.base_exact, part.kept_exact,    part.tokens,
          part.base_right, part.kept_right, part.base_log_prob, part.log_prob};
}

PartSums parse_part(const ordered_json& json) {
  const auto at = [&](std::size_t i) { return json.at(i).get<double>(); };
  return {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
}

ordered_json episode_json(const EpisodeScores& episode) {
  ordered_json kl = ordered_json::array();
  for (const double value : episode.kl) kl.push_back(rounded(value, kKlSteps));
  ordered_json parts = ordered_json::array();
  for (const PartSums& part : episode.parts) parts.push_back(part_json(part));
  return {{"kl", std::move(kl)}, {"flips", episode.flips}, {"parts", std::move(parts)}};
}

EpisodeScores parse_episode(const ordered_json& json) {
  EpisodeScores episode;
  episode.kl = json.at("kl").get<std::vector<double>>();
  episode.flips = json.at("flips").get<double>();
  for (std::size_t part = 0; part < kActionPartCount; ++part)
    episode.parts[part] = parse_part(json.at("parts").at(part));
  return episode;
}

ordered_json probe_json(const ProbeScore& probe) {
  return {{"kind", probe.kind},         {"region", probe.region},
          {"depth", probe.depth},       {"age", probe.age},
          {"right", probe.right},       {"right_full", probe.right_full},
          {"log_prob", probe.log_prob}, {"log_prob_full", probe.log_prob_full}};
}

ProbeScore parse_probe(const ordered_json& json) {
  ProbeScore probe;
  json.at("kind").get_to(probe.kind);
  json.at("region").get_to(probe.region);
  json.at("depth").get_to(probe.depth);
  json.at("age").get_to(probe.age);
  json.at("right").get_to(probe.right);
  json.at("right_full").get_to(probe.right_full);
  json.at("log_prob").get_to(probe.log_prob);
  json.at("log_prob_full").get_to(probe.log_prob_full);
  return probe;
}

ordered_json lives_json(const std::map<std::string, std::vector<LifeCount>>& lives) {
  ordered_json json = ordered_json::object();
  for (const auto& [region, counts] : lives) {
    for (const LifeCount& count : counts)
      json[region].push_back({count.steps, count.ended, count.censored});
  }
  return json;
}

std::map<std::string, std::vector<LifeCount>> parse_lives(const ordered_json& json) {
  std::map<std::string, std::vector<LifeCount>> lives;
  for (const auto& [region, counts] : json.get_ref<const ordered_json::object_t&>()) {
    for (const ordered_json& count : counts) {
      const auto at = [&](std::size_t i) { return count.at(i).get<std::int64_t>(); };
      lives[region].push_back({at(0), at(1), at(2)});
    }
  }
  return lives;
}

ordered_json steps_json(const std::vector<StepSample>& steps) {
  ordered_json json = ordered_json::array();
  for (const StepSample& step : steps) json.push_back({step.turn, rounded(step.ms, kMsSteps)});
  return json;
}

std::vector<StepSample> parse_steps(const ordered_json& json) {
  std::vector<StepSample> steps;
  for (const ordered_json& step : json.get_ref<const ordered_json::array_t&>())
    steps.push_back({step.at(0).get<std::int32_t>(), step.at(1).get<double>()});
  return steps;
}

/// Members that scores of older programs lack.
void parse_new_members(const ordered_json& json, CellScores& scores) {
  if (json.contains("lives")) scores.lives = parse_lives(json.at("lives"));
  if (json.contains("steps")) scores.steps = parse_steps(json.at("steps"));
  if (json.contains("eviction_ms_per_token"))
    scores.eviction_ms_per_token = json.at("eviction_ms_per_token").get<double>();
}

}  // namespace

ordered_json cell_scores_json(const CellScores& scores) {
  ordered_json json;
  json["episodes"] = ordered_json::array();
  for (const EpisodeScores& episode : scores.episodes)
    json["episodes"].push_back(episode_json(episode));
  json["mean_bytes"] = scores.mean_bytes;
  json["peak_bytes"] = scores.peak_bytes;
  json["full_bytes"] = scores.full_bytes;
  json["evicted_tokens"] = scores.evicted_tokens;
  json["recomputed_tokens"] = scores.recomputed_tokens;
  json["kept"] = scores.kept;
  json["lives"] = lives_json(scores.lives);
  json["steps"] = steps_json(scores.steps);
  if (scores.eviction_ms_per_token.has_value())
    json["eviction_ms_per_token"] = rounded(*scores.eviction_ms_per_token, kMsSteps);
  json["probes"] = ordered_json::array();
  for (const ProbeScore& probe : scores.probes) json["probes"].push_back(probe_json(probe));
  return json;
}

Result<CellScores> parse_cell_scores(const ordered_json& json) {
  try {
    CellScores scores;
    for (const ordered_json& episode : json.at("episodes"))
      scores.episodes.push_back(parse_episode(episode));
    json.at("mean_bytes").get_to(scores.mean_bytes);
    json.at("peak_bytes").get_to(scores.peak_bytes);
    json.at("full_bytes").get_to(scores.full_bytes);
    json.at("evicted_tokens").get_to(scores.evicted_tokens);
    json.at("recomputed_tokens").get_to(scores.recomputed_tokens);
    json.at("kept").get_to(scores.kept);
    parse_new_members(json, scores);
    for (const ordered_json& probe : json.at("probes")) scores.probes.push_back(parse_probe(probe));
    return scores;
  } catch (const ordered_json::exception& error) {
    return make_status(StatusCode::kCorrupt, "these are no scores of a cell: {}", error.what());
  }
}

}  // namespace memdecay
