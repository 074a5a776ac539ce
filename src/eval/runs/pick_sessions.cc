#include "eval/runs/pick_sessions.h"

#include <map>
#include <string>
#include <utility>

namespace memdecay {

std::vector<ChainedSession> pick_sessions(Chains chains, std::int32_t context_tokens, int most) {
  std::map<std::string, int> taken;
  std::vector<ChainedSession> sessions;
  for (ChainedSession& session : chains.sessions) {
    const bool fits = !session.is_short && session.tokens <= context_tokens;
    if (fits && taken[session.data_set]++ < most) sessions.push_back(std::move(session));
  }
  return sessions;
}

}  // namespace memdecay
