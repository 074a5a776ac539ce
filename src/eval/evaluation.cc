#include "eval/evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/text_hash.h"
#include "eval/metrics/bootstrap.h"
#include "eval/metrics/decision_metrics.h"

namespace memdecay {
namespace {

ResultKey key_of(const EvaluationTask& run, const MemoryCell& cell) {
  std::vector<std::string> variants;
  if (run.options.label_noise > 0)
    variants.push_back(fmt::format("label noise {:g} %", 100 * run.options.label_noise));
  if (run.options.after_the_fact) variants.emplace_back("after the fact");
  if (run.options.seed != SessionEvalOptions().seed)
    variants.push_back(fmt::format("seed {}", run.options.seed));
  return {run.model,        cell.policy,  cell.kv_format,
          cell.budget.text, run.data_set, fmt::format("{}", fmt::join(variants, ", "))};
}

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

namespace {

/// What scores are of: the session, and the policy's settings where its name does not say them all.
std::string scores_name(const std::string& session, const MemoryCell& cell) {
  return cell.version.empty() ? session : session + "#" + cell.version;
}

/// Names a session by all that its scores depend on beside the cell.
std::string session_name(const ChainedSession& session, const SessionEvalOptions& options) {
  const std::uint64_t text = text_hash(session.conversation.dump(), options.seed);
  return fmt::format("{}@{:016x}{}", session.id, text, options.asks_for_facts ? "+facts" : "");
}

SessionEvalOptions session_options(const EvaluationTask& run, std::size_t session) {
  SessionEvalOptions options = run.options;
  options.seed += session;
  options.asks_for_facts = !options.after_the_fact &&
                           session < static_cast<std::size_t>(std::max(0, run.recall_sessions));
  return options;
}

/// A task's sessions by the names of their scores.
std::vector<std::string> session_names(const EvaluationTask& run) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < run.sessions.size(); ++i)
    names.push_back(session_name(*run.sessions[i], session_options(run, i)));
  return names;
}

std::string no_score_note(const MemoryCell& cell, const std::string& session,
                          const Status& reason) {
  return fmt::format("{} in {}{}{} has no score in session {}: {}", cell.policy, cell.kv_format,
                     cell.budget.text.empty() ? "" : " within ", cell.budget.text, session,
                     reason.message());
}

std::vector<MemoryCell> missing_cells(const EvaluationTask& run, const std::string& session,
                                      const ScoresFile& scores) {
  std::vector<MemoryCell> missing;
  for (const MemoryCell& cell : run.cells)
    if (scores.find(key_of(run, cell), scores_name(session, cell)) == nullptr)
      missing.push_back(cell);
  return missing;
}

/// Scores one session in the cells that lack it, and says which have scores now.
Result<std::vector<MemoryCell>> score_session(Engine& engine, const EvaluationTask& run,
                                              std::size_t session, const std::string& name,
                                              ScoresFile& scores,
                                              const EvaluationListener& listener) {
  const std::vector<MemoryCell> missing = missing_cells(run, name, scores);
  std::vector<MemoryCell> scored;
  if (missing.empty()) return scored;
  MEMDECAY_ASSIGN_OR_RETURN(
      const SessionScores results,
      evaluate_session(engine, *run.sessions[session], missing, session_options(run, session),
                       [&](double share) { listener.on_progress(session, share); }));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (!results[i].ok()) {
      listener.on_note(no_score_note(missing[i], run.sessions[session]->id, results[i].status()));
      continue;
    }
    MEMDECAY_RETURN_IF_ERROR(
        scores.add(key_of(run, missing[i]), scores_name(name, missing[i]), *results[i]));
    scored.push_back(missing[i]);
  }
  return scored;
}

/// The row of a cell from all of the task's sessions that it has scores of.
Status write_row(const EvaluationTask& run, const MemoryCell& cell,
                 std::span<const std::string> names, const EvaluationFiles& files) {
  std::vector<CellScores> sessions;
  for (const std::string& name : names) {
    const CellScores* const known = files.scores.find(key_of(run, cell), scores_name(name, cell));
    if (known != nullptr) sessions.push_back(*known);
  }
  if (sessions.empty()) return Status();
  return files.results.add(key_of(run, cell), row_values(sessions));
}

}  // namespace

std::vector<double> missing_tokens(const EvaluationTask& run, const ScoresFile& scores) {
  const std::vector<std::string> names = session_names(run);
  std::vector<double> tokens;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t cells = missing_cells(run, names[i], scores).size();
    tokens.push_back(static_cast<double>(cells) * run.sessions[i]->tokens);
  }
  return tokens;
}

Status evaluate_data_set(Engine& engine, const EvaluationTask& run, const EvaluationFiles& files,
                         const EvaluationListener& listener) {
  const std::vector<std::string> names = session_names(run);
  // Rows of what was scored in earlier runs, which may have ended before they were written.
  for (const MemoryCell& cell : run.cells)
    MEMDECAY_RETURN_IF_ERROR(write_row(run, cell, names, files));
  for (std::size_t i = 0; i < run.sessions.size(); ++i) {
    MEMDECAY_ASSIGN_OR_RETURN(const std::vector<MemoryCell> scored,
                              score_session(engine, run, i, names[i], files.scores, listener));
    for (const MemoryCell& cell : scored)
      MEMDECAY_RETURN_IF_ERROR(write_row(run, cell, names, files));
  }
  return Status();
}

}  // namespace memdecay
