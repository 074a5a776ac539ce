// CellScores: what one memory cell scored in one session, as plain numbers that can be kept.
//
// Pure values and their JSON (docs/formats/results.md); any thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "eval/metrics/decision_metrics.h"
#include "eval/metrics/recall_scores.h"
#include "eval/metrics/step_sample.h"
#include "eval/metrics/survival_curve.h"

namespace memdecay {

struct CellScores {
  std::vector<EpisodeScores> episodes;
  double mean_bytes = 0;  ///< of evictable pages and tables, over the passes
  std::uint64_t peak_bytes = 0;
  std::uint64_t full_bytes = 0;  ///< of the same pages with nothing evicted, in fp16
  std::int64_t evicted_tokens = 0;
  std::int64_t recomputed_tokens = 0;  ///< computed twice
  std::map<std::string, double> kept;  ///< region -> share of its tokens there at the end
  /// region -> ages at which its tokens were let go, or that they reached
  std::map<std::string, std::vector<LifeCount>> lives;
  std::vector<StepSample> steps;  ///< timed alone, in order of their turns
  /// Of planning, dropping and demoting, a token of the session; absent in older scores.
  std::optional<double> eviction_ms_per_token;
  std::vector<ProbeScore> probes;  ///< facts asked for; empty where none were planted
};

/// KL is kept to 1e-9.
nlohmann::ordered_json cell_scores_json(const CellScores& scores);
/// kCorrupt for anything that cell_scores_json() does not write; what it did not write in the past
/// may be missing.
Result<CellScores> parse_cell_scores(const nlohmann::ordered_json& json);

}  // namespace memdecay
