// How Engine keeps its sessions within the context the model was trained on: places for tokens to
// come, by closing what evicted pages left (design decision D4).
#include <algorithm>

#include "engine/engine.h"

namespace memdecay {
namespace {

/// The share of the context that is free again after gaps were closed, where that can be: each time
/// seals a page and cuts attention's segments, so it shall be rare.
constexpr int kFreeShare = 4;

}  // namespace

int Engine::trained_context() const {
  return std::min(context_tokens_, model_->config().context_length);
}

bool Engine::outgrows_context(const Session& session) const {
  return options_.virtual_positions && evicts(session);
}

void Engine::close_gaps(Session& session, Position place) {
  Sequence& sequence = *session.sequence_;
  Position won = 0;
  for (Position gap = trained_context(); gap >= 1 && sequence.rope_position() > place; gap /= 2)
    won += sequence.close_gaps(gap);
  if (won > 0) sync_memory(session);
}

void Engine::prepare_turn(Session& session, std::size_t tokens) {
  if (!outgrows_context(session)) return;
  // Of a turn that is longer than that, the rest gets its places as it comes.
  const int context = trained_context();
  const auto most = static_cast<std::size_t>(context / 2);
  const auto coming = static_cast<int>(std::min(tokens, most));
  if (session.sequence_->rope_position() + coming > context)
    close_gaps(session, context - context / kFreeShare - coming);
}

bool Engine::make_places(Session& session, int tokens) {
  Sequence& sequence = *session.sequence_;
  const int context = trained_context();
  const auto fits = [&] { return sequence.rope_position() + tokens <= context; };
  if (!fits() && outgrows_context(session) && tokens <= context / 2) {
    const Position place = context - context / kFreeShare - tokens;
    close_gaps(session, place);
    if (!fits()) {  // too much is held, in small forms: bytes were not the reason to forget
      const Evictor::Seat seat{&*session.memory_, &sequence};
      evictor_->drop_tokens(seat, sequence.rope_position() - place);
      close_gaps(session, place);
    }
  }
  return sequence.rope_position() + tokens <= context_tokens_;
}

}  // namespace memdecay
