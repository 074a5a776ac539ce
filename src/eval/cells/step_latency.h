// Step latency: what the next token costs one memory alone, timed on a fork of its session.
//
// A pass in lockstep serves all memories at once, so it says nothing of one. The fork stands apart
// (engine/session.h) and is gone afterwards: the session stays as it is. One thread, the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "eval/metrics/step_sample.h"

namespace memdecay {

/// Most turns of a session behind which steps are timed, evenly spread.
inline constexpr std::size_t kTimedTurns = 12;

/// The same token a few times behind what the session holds, after one step that is not counted. No
/// samples where the context or the budget has no room. REQUIRES: the session is not empty.
Result<std::vector<StepSample>> time_steps(Engine& engine, const Session& session,
                                           std::int32_t turn);

/// Where a turn of the assistant ends: tokens before it, and its number from 1.
struct TurnEnd {
  std::size_t tokens = 0;
  std::int32_t turn = 0;
};

/// At most `most` of the turns that end behind token `first`, evenly spread, in order, the last
/// among them. `judged` is [tokens]: 1 where the assistant wrote the token.
std::vector<TurnEnd> spread_turn_ends(std::span<const std::uint8_t> judged, std::size_t first,
                                      std::size_t most);

}  // namespace memdecay
