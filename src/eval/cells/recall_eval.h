// Recall evaluation: one session with facts planted in it, played through several memories at once,
// and asked for every fact on a fork.
//
// The planted session (metrics/recall_probes.h) goes through all cells and a full cache in
// lockstep; after half of it and at its end each probe's question and reply are forced on forks of
// the sessions, so that no answer helps another. What is scored: metrics/recall_scores.h. Oracles
// know the future of what was recorded, not of questions: their cells get no scores. One thread,
// the engine's. Cost: one pass over the planted session a group of cells, and the tokens of
// question and reply a probe and cell.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "eval/cells/lockstep.h"
#include "eval/cells/memory_cell.h"
#include "eval/metrics/recall_scores.h"
#include "eval/runs/chained_session.h"

namespace memdecay {

struct RecallOptions {
  int cells_at_once = 6;
  PassTokens pass_tokens;
  double label_noise = 0;
  std::uint64_t seed = 1;
};

/// [cells], each with the scores of all probes in the same order, or kResourceExhausted where its
/// budget cannot hold what it must protect. Each fact stands among seven near-duplicates, or three
/// or one where the context has no room for more; all scores are empty where it has none for that.
/// `on_progress` is told the share that is done, 1 in the end.
Result<std::vector<Result<std::vector<ProbeScore>>>> ask_for_facts(
    Engine& engine, const ChainedSession& session, std::span<const MemoryCell> cells,
    const RecallOptions& options, const std::function<void(double)>& on_progress);

}  // namespace memdecay
