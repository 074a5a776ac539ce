// Decay study: recorded sessions through a memory that forgets nothing, and when the assistant last
// looked at what (the unlimited run of `memdecay calibrate decay`).
//
// A page is the unit, as for policies; page borders and regions are those of a session under a
// budget. Passes end where the speaker changes, so that every look is the assistant's or nobody's.
// One thread, the engine's. Cost: one pass over each session, no logits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "eval/calibration/use_record.h"
#include "eval/runs/chained_session.h"

namespace memdecay {

struct DecayStudyOptions {
  double looks_above = 1.0;  ///< use_recorder.h
  int chunk_tokens = 32;     ///< most tokens in a pass
};

/// The lives of one session's pages. `on_progress` is told the share that is done.
Result<std::vector<UseRecord>> record_uses(Engine& engine, const ChainedSession& session,
                                           const DecayStudyOptions& options,
                                           const std::function<void(double)>& on_progress);

}  // namespace memdecay
