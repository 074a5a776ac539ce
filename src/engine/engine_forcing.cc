// Teacher forcing: tokens that are given, not sampled, through one session or several at once.
#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "engine/engine.h"
#include "engine/extend_without_logits.h"

namespace memdecay {

Status Engine::check_extension(const Session& session, std::span<const TokenId> tokens) const {
  if (session.busy_) return Status(StatusCode::kInvalidArgument, "this session runs a request");
  MEMDECAY_RETURN_IF_ERROR(check_tokens(tokens));
  if (outgrows_context(session) ||
      session.tokens_.size() + tokens.size() <= static_cast<std::size_t>(context_tokens_)) {
    return Status();
  }
  return make_status(StatusCode::kInvalidArgument,
                     "{} tokens after {} do not fit the context of {}", tokens.size(),
                     session.tokens_.size(), context_tokens_);
}

/// Logits of rows [begin, end) of the last pass, in groups of at most max_logit_rows.
void Engine::tell_logits(int begin, int end,
                         const std::function<void(int, std::span<const float>)>& tell) {
  const auto vocab_size = static_cast<std::size_t>(model_->config().vocab_size);
  while (begin < end) {
    std::vector<int> rows(
        static_cast<std::size_t>(std::min(end - begin, transformer_->max_logit_rows())));
    std::iota(rows.begin(), rows.end(), begin);
    const std::span<const float> logits = transformer_->logits(rows);
    for (std::size_t i = 0; i < rows.size(); ++i)
      tell(rows[i], logits.subspan(i * vocab_size, vocab_size));
    begin += static_cast<int>(rows.size());
  }
}

Status Engine::extend(Session& session, std::span<const TokenId> tokens, int first_wanted,
                      const LogitsCallback& on_logits) {
  MEMDECAY_RETURN_IF_ERROR(check_extension(session, tokens));
  memory_->prepare_turn(session, tokens.size());
  while (!tokens.empty()) {
    const int begin = static_cast<int>(session.tokens_.size());
    const int wanted = std::min(static_cast<int>(tokens.size()), options_.batch_tokens);
    Room room;
    const int count = memory_->make_room_for_some(session, wanted, room);
    if (count == 0) return memory_->no_room(session, wanted, room);
    const PassSlice slice{&session, tokens.first(static_cast<std::size_t>(count)), nullptr};
    MEMDECAY_RETURN_IF_ERROR(run_pass(std::span(&slice, 1)));
    tell_logits(std::max(0, first_wanted - begin), count,
                [&](int row, std::span<const float> logits) { on_logits(begin + row, logits); });
    memory_->tend(static_cast<std::size_t>(count));
    tokens = tokens.subspan(static_cast<std::size_t>(count));
  }
  return Status();
}

Status Engine::extend_together(std::span<Session* const> sessions, std::span<const TokenId> tokens,
                               int first_wanted, const SessionLogitsCallback& on_logits) {
  for (const Session* session : sessions) {
    MEMDECAY_RETURN_IF_ERROR(check_extension(*session, tokens));
    MEMDECAY_CHECK(session->tokens_.size() == sessions[0]->tokens_.size());
  }
  for (Session* session : sessions) memory_->prepare_turn(*session, tokens.size());
  const int most = std::max(1, options_.batch_tokens / static_cast<int>(sessions.size()));
  while (!tokens.empty()) {
    const int begin = static_cast<int>(sessions[0]->tokens_.size());
    const int count = std::min(static_cast<int>(tokens.size()), most);
    const auto chunk = tokens.first(static_cast<std::size_t>(count));
    std::vector<PassSlice> slices;
    for (Session* session : sessions) {
      const bool placed = memory_->make_places(*session, count);
      const Room room = placed ? memory_->make_room(*session, count) : Room();
      if (!placed || !room) {
        const Status refused = memory_->no_room(*session, count, room);
        for (const PassSlice& slice : slices) {  // as if nothing had been asked
          MEMDECAY_CHECK(slice.session->sequence_->try_truncate(begin));
          memory_->sync(*slice.session);
        }
        return refused;
      }
      slices.push_back({session, chunk, nullptr});
    }
    MEMDECAY_RETURN_IF_ERROR(run_pass(slices));
    const int skipped = std::clamp(first_wanted - begin, 0, count);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      const int first_row = static_cast<int>(i) * count;
      tell_logits(first_row + skipped, first_row + count,
                  [&](int row, std::span<const float> logits) {
                    on_logits(i, begin + row - first_row, logits);
                  });
    }
    memory_->tend(rows_of(slices));
    tokens = tokens.subspan(static_cast<std::size_t>(count));
  }
  return Status();
}

Status Engine::truncate(Session& session, int size) {
  MEMDECAY_CHECK(!session.busy_ && size >= 0 && size <= static_cast<int>(session.tokens_.size()));
  if (!session.sequence_->try_truncate(size)) {
    return make_status(
        StatusCode::kInvalidArgument,
        "the session cannot be cut back to {} tokens: its sliding window has let earlier ones go",
        size);
  }
  session.tokens_.resize(static_cast<std::size_t>(size));
  session.remembered_ = std::min(session.remembered_, size);
  memory_->sync(session);
  return Status();
}

Result<int> Engine::begin_turn(Session& session, std::size_t tokens) {
  MEMDECAY_CHECK(!session.busy_);
  const std::vector<TokenId> history = session.tokens_;
  const int again = memory_->discard_tail(session, tokens);
  if (again == 0) return 0;
  MEMDECAY_RETURN_IF_ERROR(extend_without_logits(
      *this, session, std::span(history).last(static_cast<std::size_t>(again))));
  return again;
}

}  // namespace memdecay
