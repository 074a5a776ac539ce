// Which chained sessions are played: the first of each data set that a model can hold.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/runs/chained_session.h"

namespace memdecay {

/// The first `most` sessions of each data set that are not short and fit a context of
/// `context_tokens`, in their order.
std::vector<ChainedSession> pick_sessions(Chains chains, std::int32_t context_tokens, int most);

}  // namespace memdecay
