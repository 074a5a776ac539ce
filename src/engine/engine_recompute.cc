// Computing again what was dropped whole, for sessions whose policy lives by that: at a turn's
// border the newest part of the history that fits comes back from its token ids
// (docs/decisions/0309).
#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "engine/engine.h"
#include "engine/extend_without_logits.h"

namespace memdecay {
namespace {

/// History takes one part in so many of the budget when it is computed again. Then the rest has to
/// fill up before it is dropped the next time, so over a session about as many tokens are computed
/// again as come new.
constexpr std::uint64_t kRefillParts = 2;

}  // namespace

std::uint64_t Engine::refill_bytes(const Session& session) const {
  const SessionMemory& memory = *session.memory_;
  std::uint64_t room = memory.options().budget_bytes / kRefillParts;
  const KvBudget& budget = cache_->budget();
  if (budget.limit_bytes() == KvBudget::kUnlimited) return room;
  const std::uint64_t others =
      budget.current_bytes() - std::min(budget.current_bytes(), memory.tracked_bytes());
  const std::uint64_t all = budget.limit_bytes() / kRefillParts;
  return std::min(room, all - std::min(all, others));
}

Position Engine::recompute_start(const Session& session, std::size_t coming) const {
  const auto size = static_cast<Position>(session.tokens_.size());
  if (!evicts(session) || !session.memory_->recomputes() || size == 0) return size;
  const SessionMemory& memory = *session.memory_;
  const auto& pages = memory.pages();
  const std::uint64_t page_bytes = memory.options().forms[form_index(PageForm::kF16)].bytes;
  const auto page_tokens = static_cast<std::uint64_t>(memory.options().page_tokens);
  const auto end = size + static_cast<Position>(coming);
  const auto bytes_from = [&](Position start) {
    std::uint64_t bytes = 0;
    for (const SessionMemory::Page& page : pages)
      if (page.first_position < start) bytes += memory.meta(page).bytes;
    const auto tokens = static_cast<std::uint64_t>(end - start);
    return bytes +
           page_bytes * ((tokens + page_tokens - 1) / page_tokens + memory.cuts(start, end).size());
  };
  const std::uint64_t room = refill_bytes(session);
  Position low = 0;
  for (Position high = size; low < high;) {
    const Position middle = std::midpoint(low, high);
    if (bytes_from(middle) <= room) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  Position held = 0;
  for (const SessionMemory::Page& page : pages) {
    if (page.first_position >= low) {
      held += page.filled;
    } else if (page.first_position + page.filled > low) {
      low = page.first_position + page.filled;
    }
  }
  const bool complete = held >= size - low;
  return complete || low < session.sequence_->earliest_cut() ? size : low;
}

int Engine::discard_tail(Session& session, std::size_t coming) {
  const Position start = recompute_start(session, coming);
  const int tokens = static_cast<int>(session.tokens_.size()) - start;
  if (tokens == 0) return 0;
  MEMDECAY_CHECK(session.sequence_->try_truncate(start));
  session.tokens_.resize(static_cast<std::size_t>(start));
  sync_memory(session);
  session.memory_->recomputed(tokens);
  return tokens;
}

Result<int> Engine::begin_turn(Session& session, std::size_t tokens) {
  MEMDECAY_CHECK(!session.busy_);
  const std::vector<TokenId> history = session.tokens_;
  const int again = discard_tail(session, tokens);
  if (again == 0) return 0;
  MEMDECAY_RETURN_IF_ERROR(extend_without_logits(
      *this, session, std::span(history).last(static_cast<std::size_t>(again))));
  return again;
}

}  // namespace memdecay
