// Evaluation: the cells of one data set over all its sessions, as rows of a results file.
//
// What each cell scored in each session is kept at once (report/scores_file.h), so a run that was
// interrupted, or is asked for more sessions or cells, measures only what it lacks. A row joins the
// sessions of a cell: metrics with intervals by episode, realised bytes, what was kept; rows are
// written anew after every session. One thread, the engine's. Cost: session_eval.h.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "eval/cells/memory_cell.h"
#include "eval/cells/session_eval.h"
#include "eval/report/results_file.h"
#include "eval/report/scores_file.h"
#include "eval/runs/chained_session.h"

namespace memdecay {

struct EvaluationTask {
  std::string model;  ///< as it stands in the rows
  std::string data_set;
  std::span<const ChainedSession* const> sessions;
  std::span<const MemoryCell> cells;
  SessionEvalOptions options;  ///< asks_for_facts is set per session:
  int recall_sessions = 0;     ///< in the first so many sessions facts are asked for
};

/// Where results are kept.
struct EvaluationFiles {
  ResultsFile& results;
  ScoresFile& scores;
};

/// What is said on the way.
struct EvaluationListener {
  /// Session `number` of all (from 0) is done by `share`.
  std::function<void(std::size_t number, double share)> on_progress;
  /// A sentence about a cell that could not be scored in a session, or a session without facts.
  std::function<void(const std::string& note)> on_note;
};

/// Adds the scores that are missing and brings the rows up to date. The scores of a session are
/// found again by its id, its text and the task's options. A cell that cannot hold what it must in
/// a session has no score there, which is noted; the next call tries again.
Status evaluate_data_set(Engine& engine, const EvaluationTask& run, const EvaluationFiles& files,
                         const EvaluationListener& listener);

/// [sessions]: the tokens that evaluate_data_set() has to play, counted once for each cell that
/// lacks scores.
std::vector<double> missing_tokens(const EvaluationTask& run, const ScoresFile& scores);

}  // namespace memdecay
