// SessionEval: one chained session through all cells of an evaluation, and what each cell scored.
//
// The session is rendered once, its tokens are played in lockstep (lockstep.h) through a full cache
// and a few cells at a time, and every assistant token is scored against the full cache
// (decision_metrics.h): streaming or after the fact, with the labels of the rules, or those noised.
// Facts are asked for in a play of their own (recall_eval.h). What a step costs is timed on forks
// (step_latency.h) behind some of the assistant's turns. One thread, the engine's. Cost: one pass
// over the session a group of cells, and a few steps for each cell and timed turn; with an oracle
// among them one more pass, in small steps; as much again where facts are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "eval/cells/lockstep.h"
#include "eval/cells/memory_cell.h"
#include "eval/report/cell_scores.h"
#include "eval/runs/chained_session.h"

namespace memdecay {

struct SessionEvalOptions {
  int cells_at_once = 6;  ///< sessions beside the reference in one pass
  PassTokens pass_tokens;
  double label_noise = 0;  ///< share of region spans that are wrong
  /// Nothing is evicted while the first three quarters of a session are played; then each cell
  /// evicts once, to its share of what is held, and the rest is scored. Else streaming.
  bool after_the_fact = false;
  /// Also plays a copy of the session that has facts planted in it, and asks for them.
  bool asks_for_facts = false;
  std::uint64_t seed = 1;
};

/// [cells]: scores, or kResourceExhausted where a budget cannot hold what the cell must protect.
using SessionScores = std::vector<Result<CellScores>>;

/// `on_progress` is told the share of this session's work that is done. Fails as a whole where the
/// session cannot be read or played at all.
Result<SessionScores> evaluate_session(Engine& engine, const ChainedSession& session,
                                       std::span<const MemoryCell> cells,
                                       const SessionEvalOptions& options,
                                       const std::function<void(double)>& on_progress);

}  // namespace memdecay
