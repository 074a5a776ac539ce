#include "eval/runs/pick_sessions.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace memdecay {

PickedSessions pick_sessions(Chains chains, std::int32_t context_tokens, int most) {
  std::map<std::string, int> taken;
  PickedSessions picked;
  int too_long = 0;
  for (ChainedSession& session : chains.sessions) {
    if (session.is_short) continue;
    if (session.tokens > context_tokens) {
      ++too_long;
    } else if (taken[session.data_set]++ < most) {
      picked.sessions.push_back(std::move(session));
    }
  }
  if (too_long > 0)
    picked.notes.push_back(fmt::format(
        "{} longer than the context of {} and not played",
        too_long == 1 ? "1 session is" : fmt::format("{} sessions are", too_long), context_tokens));
  return picked;
}

}  // namespace memdecay
