#include "eval/lockstep.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"

namespace memdecay {

Result<std::unique_ptr<Lockstep>> Lockstep::open(Engine& engine,
                                                 std::span<const SessionOptions> memories) {
  std::unique_ptr<Lockstep> lockstep(new Lockstep(engine));
  SessionOptions everything;
  everything.policy = "none";
  everything.kv_forms = KvForms::kF16;
  std::vector<SessionOptions> all = {everything};
  all.insert(all.end(), memories.begin(), memories.end());
  for (const SessionOptions& options : all) {
    MEMDECAY_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, engine.open_session(options));
    lockstep->pointers_.push_back(session.get());
    lockstep->sessions_.push_back(std::move(session));
  }
  return lockstep;
}

Result<std::unique_ptr<Lockstep>> Lockstep::fork(std::size_t tokens) const {
  std::unique_ptr<Lockstep> fork(new Lockstep(engine_));
  fork->answered_ = !sessions_[0]->tokens().empty();  // what it is asked is a turn of its own
  for (const std::unique_ptr<Session>& session : sessions_) {
    MEMDECAY_ASSIGN_OR_RETURN(std::unique_ptr<Session> copy, engine_.fork_session(*session));
    if (tokens < copy->tokens().size())
      MEMDECAY_RETURN_IF_ERROR(engine_.truncate(*copy, static_cast<int>(tokens)));
    fork->pointers_.push_back(copy.get());
    fork->sessions_.push_back(std::move(copy));
  }
  return fork;
}

/// Appends tokens; where they are judged, the token behind each is what its logits are asked for.
Status Lockstep::play_run(std::span<const TokenId> tokens, TokenId next, bool judged,
                          const OnToken& on_token) {
  const int begin = static_cast<int>(sessions_[0]->tokens().size());
  reference_.resize(std::max(reference_.size(), tokens.size()));
  const auto tell = [&](std::size_t session, int position, std::span<const float> logits) {
    const auto at = static_cast<std::size_t>(position - begin);
    if (session == 0) {
      reference_[at].assign(logits.begin(), logits.end());
      return;
    }
    const TokenId token = at + 1 < tokens.size() ? tokens[at + 1] : next;
    on_token({session - 1, position + 1, token, reference_[at], logits});
  };
  return engine_.extend_together(pointers_, tokens,
                                 judged ? begin : std::numeric_limits<int>::max(), tell);
}

Status Lockstep::shrink(std::size_t memory, std::uint64_t bytes) {
  return engine_.shrink(*sessions_[memory + 1], bytes);
}

Status Lockstep::play(std::span<const TokenId> tokens, const PromptLabels& labels,
                      std::span<const std::uint8_t> judged, const PassTokens& most,
                      const OnToken& on_token, const OnPass& on_pass) {
  MEMDECAY_CHECK(judged.size() == tokens.size() && most.read > 0 && most.written > 0);
  for (Session* session : pointers_) engine_.label(*session, labels);
  // The logits of token i are judged by token i + 1.
  const auto wanted = [&](std::size_t i) { return i + 1 < tokens.size() && judged[i + 1] != 0; };
  for (std::size_t begin = 0; begin < tokens.size();) {
    const bool was_answer = begin > 0 ? wanted(begin - 1) : answered_;
    if (was_answer && !wanted(begin)) {  // the client sends the next turn
      std::size_t turn_end = begin;
      while (turn_end < tokens.size() && !wanted(turn_end)) ++turn_end;
      for (Session* session : pointers_)
        MEMDECAY_RETURN_IF_ERROR(engine_.begin_turn(*session, turn_end - begin).status());
    }
    std::size_t end = begin + 1;
    const auto chunk = static_cast<std::size_t>(wanted(begin) ? most.written : most.read);
    while (end < tokens.size() && end - begin < chunk && wanted(end) == wanted(begin)) ++end;
    const TokenId next = end < tokens.size() ? tokens[end] : -1;
    MEMDECAY_RETURN_IF_ERROR(
        play_run(tokens.subspan(begin, end - begin), next, wanted(begin), on_token));
    MEMDECAY_RETURN_IF_ERROR(on_pass());
    begin = end;
  }
  if (!judged.empty()) answered_ = judged.back() != 0;
  return Status();
}

}  // namespace memdecay
