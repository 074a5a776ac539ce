// Recall scores: which planted facts a memory still answers, of those that the full cache answers.
//
// One score a probe (recall_probes.h). An answer is right when every token of it is ranked first
// while the reply is forced; log-probabilities are means over its tokens. Intervals are drawn by
// session. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "eval/metrics/recall_probes.h"

namespace memdecay {

struct ProbeScore {
  std::string kind;    ///< probe_kind_name()
  std::string region;  ///< region_name()
  double depth = 0;    ///< share of the session before the fact
  double age = 0;      ///< share of the session between the fact and its question
  bool right_full = false;
  bool right = false;
  double log_prob_full = 0;  ///< a token, natural logarithm
  double log_prob = 0;
};

/// Members of a row for the probes of [sessions]: "recall", "goal_survival",
/// "instruction_survival" (right of those that the full cache has right), "recall_log_prob",
/// "recall_log_prob_full", and "recall_by": [{"kind", "region", "depth", "age", "probes",
/// "right_full", "right"}], depth and age as thirds of a session ("0-33%", "33-67%", "67-100%").
/// Empty where nothing was planted.
nlohmann::ordered_json recall_json(std::span<const std::vector<ProbeScore>> sessions);

}  // namespace memdecay
