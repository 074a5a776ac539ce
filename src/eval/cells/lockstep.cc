#include "eval/cells/lockstep.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"

namespace memdecay {

/// What a session's status means for the play: without room a memory falls out, all else and the
/// reference's end it.
Status Lockstep::keep_or_drop(std::size_t session, const Status& status) {
  if (status.ok()) return Status();
  if (session == 0 || status.code() != StatusCode::kResourceExhausted) return status;
  sessions_[session].reset();
  failures_[session] = status;
  return Status();
}

Status Lockstep::seat(Result<std::unique_ptr<Session>> session) {
  failures_.emplace_back();
  in_parts_.push_back(false);
  const Status opened = session.status();
  sessions_.push_back(opened.ok() ? std::move(session).value() : nullptr);
  return keep_or_drop(sessions_.size() - 1, opened);
}

Result<std::unique_ptr<Lockstep>> Lockstep::open(Engine& engine,
                                                 std::span<const SessionOptions> memories) {
  std::unique_ptr<Lockstep> lockstep(new Lockstep(engine));
  SessionOptions everything;
  everything.policy = "none";
  everything.kv_forms = KvForms::kF16;
  std::vector<SessionOptions> all = {everything};
  all.insert(all.end(), memories.begin(), memories.end());
  for (const SessionOptions& options : all)
    MEMDECAY_RETURN_IF_ERROR(lockstep->seat(engine.open_session(options)));
  return lockstep;
}

Result<std::unique_ptr<Lockstep>> Lockstep::fork(std::size_t tokens) const {
  std::unique_ptr<Lockstep> fork(new Lockstep(engine_));
  fork->answered_ = tokens_played() > 0;  // what it is asked is a turn of its own
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i] == nullptr) {
      MEMDECAY_RETURN_IF_ERROR(fork->seat(failures_[i]));
      continue;
    }
    MEMDECAY_RETURN_IF_ERROR(fork->seat(engine_.fork_session(*sessions_[i])));
    Session* const copy = fork->sessions_.back().get();
    if (copy != nullptr) copy->stand_apart();
    if (copy != nullptr && tokens < copy->tokens().size())
      MEMDECAY_RETURN_IF_ERROR(engine_.truncate(*copy, static_cast<int>(tokens)));
  }
  return fork;
}

/// One session by itself; where a pass has no room as a whole, from now on in parts.
Status Lockstep::extend_alone(std::size_t session, std::span<const TokenId> tokens,
                              int first_wanted, const OnLogits& on_logits) {
  Session* const one = sessions_[session].get();
  if (!in_parts_[session]) {
    const std::size_t before = one->tokens().size();
    const Status status =
        engine_.extend_together(std::span(&one, 1), tokens, first_wanted,
                                [&](std::size_t, int position, std::span<const float> logits) {
                                  on_logits(session, position, logits);
                                });
    // The reference forgets nothing, so parts would find no more room.
    if (session == 0 || status.code() != StatusCode::kResourceExhausted) return status;
    in_parts_[session] = true;
    tokens = tokens.subspan(one->tokens().size() - before);
  }
  const auto tell = [&](int position, std::span<const float> logits) {
    on_logits(session, position, logits);
  };
  return keep_or_drop(session, engine_.extend(*one, tokens, first_wanted, tell));
}

/// All that can in one pass, the others after them.
Status Lockstep::extend(std::span<const TokenId> tokens, int first_wanted,
                        const OnLogits& on_logits) {
  std::vector<Session*> together;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i] == nullptr || in_parts_[i]) continue;
    together.push_back(sessions_[i].get());
    numbers.push_back(i);
  }
  const auto end = static_cast<std::size_t>(tokens_played()) + tokens.size();
  const Status status = engine_.extend_together(
      together, tokens, first_wanted,
      [&](std::size_t session, int position, std::span<const float> logits) {
        on_logits(numbers[session], position, logits);
      });
  if (!status.ok() && status.code() != StatusCode::kResourceExhausted) return status;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i] == nullptr || sessions_[i]->tokens().size() == end) continue;
    const std::size_t missing = end - sessions_[i]->tokens().size();
    MEMDECAY_RETURN_IF_ERROR(extend_alone(i, tokens.last(missing), first_wanted, on_logits));
  }
  return Status();
}

/// Appends tokens; where they are judged, the token behind each is what its logits are asked for.
Status Lockstep::play_run(std::span<const TokenId> tokens, TokenId next, bool judged,
                          const OnToken& on_token) {
  const int begin = static_cast<int>(tokens_played());
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
  return extend(tokens, judged ? begin : std::numeric_limits<int>::max(), tell);
}

Status Lockstep::shrink(std::size_t memory, std::uint64_t bytes) {
  if (sessions_[memory + 1] == nullptr) return Status();
  return keep_or_drop(memory + 1, engine_.shrink(*sessions_[memory + 1], bytes));
}

/// The client sends a turn of so many tokens.
Status Lockstep::begin_turn(std::size_t tokens) {
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i] == nullptr) continue;
    MEMDECAY_RETURN_IF_ERROR(keep_or_drop(i, engine_.begin_turn(*sessions_[i], tokens).status()));
  }
  return Status();
}

Status Lockstep::play(std::span<const TokenId> tokens, const PromptLabels& labels,
                      std::span<const std::uint8_t> judged, const PassTokens& most,
                      const OnToken& on_token, const OnPass& on_pass) {
  MEMDECAY_CHECK(judged.size() == tokens.size() && most.read > 0 && most.written > 0);
  for (const std::unique_ptr<Session>& session : sessions_)
    if (session != nullptr) engine_.label(*session, labels);
  // The logits of token i are judged by token i + 1.
  const auto wanted = [&](std::size_t i) { return i + 1 < tokens.size() && judged[i + 1] != 0; };
  for (std::size_t begin = 0; begin < tokens.size();) {
    const bool was_answer = begin > 0 ? wanted(begin - 1) : answered_;
    if (was_answer && !wanted(begin)) {
      std::size_t turn_end = begin;
      while (turn_end < tokens.size() && !wanted(turn_end)) ++turn_end;
      MEMDECAY_RETURN_IF_ERROR(begin_turn(turn_end - begin));
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
