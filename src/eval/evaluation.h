// Evaluation: the cells of one data set over all its sessions, as rows of a results file.
//
// Cells that have a row already are left out, so a run that was interrupted goes on where it was.
// A row joins the sessions of a cell: metrics with intervals by episode, realised bytes, what was
// kept. One thread, the engine's. Cost: session_eval.h, a session at a time.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "engine/engine.h"
#include "eval/memory_cell.h"
#include "eval/report/results_file.h"
#include "eval/runs/chained_session.h"
#include "eval/session_eval.h"

namespace memdecay {

struct EvaluationTask {
  std::string model;  ///< as it stands in the rows
  std::string data_set;
  std::span<const ChainedSession* const> sessions;
  std::span<const MemoryCell> cells;
  SessionEvalOptions options;
};

/// Session `number` of all (from 0) is done by `share`.
using OnSessionProgress = std::function<void(std::size_t number, double share)>;

/// Adds the rows that are missing.
Status evaluate_data_set(Engine& engine, const EvaluationTask& run, ResultsFile& results,
                         const OnSessionProgress& on_progress);

/// All sessions' scores of one cell as the values of a row. REQUIRES: at least one session.
nlohmann::ordered_json row_values(std::span<const CellScores> sessions);

}  // namespace memdecay
