// How Engine's sessions share exact prefixes: their own history first, then what others left.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "engine/engine.h"

namespace memdecay {

Status Engine::initialize_prefixes() {
  if (!options_.share_prefixes) return Status();
  const std::string fingerprint = fmt::format(
      "{} {} {} {} {}", model_->config().name, model_->file_bytes(), model_->parameters(),
      options_.precision == Precision::kExact ? "exact" : "fast", kernels_.name);
  MEMDECAY_ASSIGN_OR_RETURN(
      shared_, SharedPrefixes::create(*cache_, fingerprint, options_.unbudgeted_prefix_bytes));
  return Status();
}

/// The session's own history, cut back to what the prompt begins with.
int Engine::match_own(Session& session, std::span<const TokenId> prompt, PrefixDifference& miss) {
  const auto& held = session.tokens_;
  std::size_t same = 0;
  while (same < held.size() && same + 1 < prompt.size() && held[same] == prompt[same]) ++same;
  if (same < held.size() && held[same] != prompt[same])
    miss = difference_at(held, prompt, static_cast<Position>(same));
  // A windowed group may have let go of what the cut would show again: then everything is computed
  // anew.
  if (!session.sequence_->try_truncate(static_cast<Position>(same))) {
    miss.cause = PrefixDifference::Cause::kEvicted;
    miss.matched_tokens = 0;
    same = 0;
    MEMDECAY_CHECK(session.sequence_->try_truncate(0));
  }
  return static_cast<int>(same);
}

Engine::PrefixMatch Engine::match_prefix(Session& session, std::span<const TokenId> prompt) {
  MEMDECAY_CHECK(!session.busy_);
  PrefixMatch match;
  const bool went_on = !session.tokens_.empty() && session.tokens_.size() < prompt.size();
  const int own = match_own(session, prompt, match.miss);
  const bool continues = went_on && own == static_cast<int>(session.tokens_.size());
  session.tokens_.resize(static_cast<std::size_t>(own));
  memory_->sync(session);  // pages that stand where own ones were are others
  if (shares(session) && !prompt.empty()) {
    std::vector<Position> cuts;
    const auto size = static_cast<Position>(prompt.size());
    if (session.memory_.has_value()) cuts = session.memory_->cuts(0, size);
    SharedPrefixes::Match found = shared_->match(*session.sequence_, {session.cache_salt_, {}},
                                                 prompt.first(prompt.size() - 1), cuts,
                                                 most_pages(session), options_.miss_audience);
    match.cached_tokens = found.taken_tokens;
    if (found.replaced_own && session.memory_.has_value()) session.memory_->sync({}, 0);
    const bool own_differs = match.miss.cause != PrefixDifference::Cause::kNone;
    if (found.taken_tokens > 0 || !(own_differs || continues)) match.miss = found.difference;
  }
  match.tokens = session.sequence_->size();
  session.tokens_.assign(prompt.begin(), prompt.begin() + match.tokens);
  session.remembered_ = std::min(session.remembered_, match.tokens);
  memory_->sync(session);
  return match;
}

/// Pages, as they are written, that the session's own budget holds.
std::size_t Engine::most_pages(const Session& session) {
  if (!session.evicts()) return std::numeric_limits<std::size_t>::max();
  const SessionMemoryOptions& options = session.memory_->options();
  return options.budget_bytes / options.forms[form_index(PageForm::kF16)].bytes;
}

/// Pages of a fixed form are changed as soon as they are sealed, at times that depend on passes:
/// none of them is exact.
bool Engine::shares(const Session& session) const {
  const bool fixed = session.memory_ && session.memory_->options().fixed_form.has_value();
  return shared_ != nullptr && !fixed;
}

void Engine::remember_prefix(Session& session) {
  if (!shares(session)) return;
  shared_->remember(*session.sequence_, {session.cache_salt_, {}}, session.tokens_,
                    session.remembered_);
}

void Engine::forget_prefixes() {
  if (shared_ != nullptr) shared_->clear();
}

}  // namespace memdecay
