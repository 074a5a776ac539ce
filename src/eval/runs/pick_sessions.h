// Which chained sessions are played: the first of each data set that a model can hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/runs/chained_session.h"

namespace memdecay {

struct PickedSessions {
  std::vector<ChainedSession> sessions;
  std::vector<std::string> notes;  ///< why others cannot be played, one sentence each
};

/// The first `most` sessions of each data set that are not short and fit a context of
/// `context_tokens`, in their order. Those beyond `most` are no note: nobody asked for them.
PickedSessions pick_sessions(Chains chains, std::int32_t context_tokens, int most);

}  // namespace memdecay
