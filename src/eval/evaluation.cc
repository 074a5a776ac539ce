#include "eval/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "eval/metrics/bootstrap.h"
#include "eval/metrics/decision_metrics.h"

namespace memdecay {
namespace {

ResultKey key_of(const EvaluationTask& run, const MemoryCell& cell) {
  const double noise = run.options.label_noise;
  std::string variant = noise > 0 ? fmt::format("label noise {:g} %", 100 * noise) : "";
  if (run.options.after_the_fact)
    variant += variant.empty() ? "after the fact" : ", after the fact";
  return {run.model, cell.policy, cell.kv_format, cell.budget.text, run.data_set, variant};
}

}  // namespace

nlohmann::ordered_json row_values(std::span<const CellScores> sessions) {
  std::vector<EpisodeScores> episodes;
  std::vector<EpisodeSum> bytes;
  double peak_share = 0;
  std::int64_t evicted = 0;
  std::int64_t recomputed = 0;
  std::map<std::string, double> kept;
  for (const CellScores& session : sessions) {
    episodes.insert(episodes.end(), session.episodes.begin(), session.episodes.end());
    bytes.push_back({session.mean_bytes, 1});
    const auto full = static_cast<double>(std::max<std::uint64_t>(1, session.full_bytes));
    peak_share = std::max(peak_share, static_cast<double>(session.peak_bytes) / full);
    evicted += session.evicted_tokens;
    recomputed += session.recomputed_tokens;
    for (const auto& [region, share] : session.kept)
      kept[region] += share / static_cast<double>(sessions.size());
  }
  nlohmann::ordered_json row = decision_metrics_json(episodes);
  row["kv_bytes"] = metric_json(bootstrap_ratio(bytes));
  row["peak_share_of_fp16"] = peak_share;
  row["evicted_tokens"] = evicted;
  row["tokens_computed_twice"] = recomputed;
  row["sessions"] = sessions.size();
  row["kept"] = kept;
  return row;
}

Status evaluate_data_set(Engine& engine, const EvaluationTask& run, ResultsFile& results,
                         const OnSessionProgress& on_progress) {
  std::vector<MemoryCell> missing;
  for (const MemoryCell& cell : run.cells)
    if (!results.has(key_of(run, cell))) missing.push_back(cell);
  if (missing.empty()) return Status();
  std::vector<std::vector<CellScores>> scores(missing.size());
  for (std::size_t i = 0; i < run.sessions.size(); ++i) {
    SessionEvalOptions options = run.options;
    options.seed += i;
    MEMDECAY_ASSIGN_OR_RETURN(std::vector<CellScores> session,
                              evaluate_session(engine, *run.sessions[i], missing, options,
                                               [&](double share) { on_progress(i, share); }));
    for (std::size_t cell = 0; cell < missing.size(); ++cell)
      scores[cell].push_back(std::move(session[cell]));
  }
  for (std::size_t cell = 0; cell < missing.size(); ++cell)
    MEMDECAY_RETURN_IF_ERROR(results.add(key_of(run, missing[cell]), row_values(scores[cell])));
  return Status();
}

}  // namespace memdecay
