#include "engine/memory/memory_coordinator.h"

#include <algorithm>

#include "core/check.h"
#include "core/steady_clock.h"
#include "core/units.h"
#include "engine/memory/recompute_start.h"
#include "engine/memory/second_try.h"
#include "policy/policies/policy_spec.h"

namespace memdecay {
namespace {

/// Pages' worth of bytes that one call of tend() may free: a step must not wait for more.
constexpr std::uint64_t kTendedPages = 2;
/// Pages that one call of tend() may copy to pack them: after a pass of one token, and one more for
/// so many rows of the pass, since a longer pass hides more.
constexpr std::size_t kPackedPages = 4;
constexpr std::size_t kRowsPerPackedPage = 8;
constexpr std::size_t kMostPackedPages = 16;
/// The newest pages may be all kept where they are at most this part of the budget.
constexpr std::uint64_t kNewestShare = 4;
/// A plan frees less than it says where pages are shared: so often a pass asks again, each time for
/// twice as much.
constexpr int kMostAttempts = 8;
/// A full session reads on by so many pages' tokens before it drops anything.
constexpr int kSmallestPassPages = 2;
/// Pages whose keys one pass reads, and pages that it compares with the mean key: a pass fills
/// about as many at most, and the mean key of a long session moves slowly.
constexpr int kMostKeysRead = 16;
constexpr int kMostKeysJudged = 32;
/// The share of the context that is free again after gaps were closed, where that can be: each time
/// seals a page and cuts attention's segments, so it shall be rare.
constexpr int kFreeShare = 4;

std::optional<KvFormat> fixed_form(KvForms forms) {
  switch (forms) {
    case KvForms::kInt8:
      return KvFormat::kInt8;
    case KvForms::kK8V4:
      return KvFormat::kK8V4;
    case KvForms::kInt4:
      return KvFormat::kInt4;
    default:
      return std::nullopt;
  }
}

}  // namespace

MemoryCoordinator::MemoryCoordinator(const Surroundings& surroundings)
    : options_(surroundings.options),
      model_(surroundings.model),
      groups_(surroundings.groups),
      cache_(surroundings.cache),
      shared_(surroundings.shared),
      sessions_(surroundings.sessions),
      context_tokens_(surroundings.context_tokens),
      evictable_(groups_.without_window()),
      form_choice_(surroundings.options, surroundings.model, surroundings.transformer,
                   surroundings.groups, surroundings.cache) {
  if (evictable_.has_value()) evictor_.emplace(cache_, *evictable_);
}

std::uint64_t MemoryCoordinator::page_bytes() const {
  return PagePool::stride_bytes_for(groups_.groups[evictable_->index()].layout);
}

Result<EvictionPolicyHandle> MemoryCoordinator::make_policy(const SessionOptions& options) const {
  PolicyOptions policy;
  policy.protect_prefix = options.protect_prefix.value_or(false);
  policy.random_seed = options.random_seed;
  policy.memdecay.initial = options_.policy_config.initial;
  policy.memdecay.decay = options_.policy_config.decay;
  policy.memdecay.adaptive.enabled = options_.adaptive_decay;
  policy.memdecay.ladder.enabled = options.kv_forms == KvForms::kAuto;
  // Pages that are always kept must leave room beside the pins, however small their messages are.
  const std::uint64_t budget = std::min(options.budget_bytes, options_.kv_budget_bytes);
  std::int32_t& newest = policy.memdecay.protection.newest_pages;
  const std::uint64_t fitting = budget / kNewestShare / page_bytes();
  if (fitting < static_cast<std::uint64_t>(newest))
    newest = std::max(1, static_cast<std::int32_t>(fitting));
  if (options.own_policy) return options.own_policy(policy);
  return make_policy_by_spec(options.policy == "none" ? "window" : options.policy, policy);
}

Status MemoryCoordinator::add(Session& session, SessionOptions options) {
  if (options.policy.empty()) options.policy = options_.policy;
  if (!options.kv_forms.has_value()) options.kv_forms = options_.kv_forms;
  if (!options.protect_prefix.has_value()) options.protect_prefix = options_.protect_prefix;
  SessionMemoryOptions memory;
  memory.fixed_form = fixed_form(*options.kv_forms);
  memory.budget_bytes = options.evicts_when_asked ? KvBudget::kUnlimited : options.budget_bytes;
  memory.watermarks = options.watermarks;
  memory.packs_pages = options.packs_pages;
  memory.evicts =
      options.policy != "none" &&
      (options.evicts_when_asked ||
       std::min(options.budget_bytes, options_.kv_budget_bytes) != KvBudget::kUnlimited);
  if (!evictable_.has_value() || (!memory.evicts && !memory.fixed_form.has_value()))
    return Status();
  const KvPageLayout& layout = groups_.groups[evictable_->index()].layout;
  memory.page_tokens = layout.page_tokens;
  memory.own_format = layout.format;
  MEMDECAY_ASSIGN_OR_RETURN(EvictionPolicyHandle policy, make_policy(options));
  // What is kept to judge a page by is part of what it costs.
  const std::uint64_t sketch_bytes = memory.evicts && policy->wants(EvidenceKind::kKeySimilarity)
                                         ? KeyDirections::page_bytes(layout)
                                         : 0;
  MEMDECAY_RETURN_IF_ERROR(offer_forms(options, sketch_bytes, memory));
  session.memory_.emplace(std::move(policy), memory);
  session.memory_->advance(steady_seconds());  // its clock begins here
  session.memory_options_ = std::move(options);
  cap_pins(session, 1);
  return Status();
}

Status MemoryCoordinator::offer_forms(const SessionOptions& options, std::uint64_t sketch_bytes,
                                      SessionMemoryOptions& memory) {
  memory.forms[form_index(PageForm::kF16)] = {page_bytes(), 0};
  // A budget too small for a page to change its form in still drops pages.
  const bool has_spare = evictor_->hold_spare() ||
                         (prefixes_give_way(evictor_->spare_bytes()) && evictor_->hold_spare());
  if (has_spare)
    MEMDECAY_RETURN_IF_ERROR(form_choice_.offer(*options.kv_forms, *evictable_, memory));
  for (FormCost& form : memory.forms)
    if (form.bytes > 0) form.bytes += sketch_bytes;
  memory.demotes = options.kv_forms == KvForms::kAuto && has_spare;
  if (!memory.fixed_form.has_value() ||
      memory.forms[form_index(form_of(*memory.fixed_form))].bytes > 0) {
    return Status();
  }
  return make_status(StatusCode::kResourceExhausted,
                     "pages cannot become {}: the KV budget is too small for one to change its "
                     "form in, or the engine was made without pools for it",
                     kv_format_name(*memory.fixed_form));
}

std::vector<Session*> MemoryCoordinator::seated() const {
  const bool apart = std::any_of(sessions_.begin(), sessions_.end(),
                                 [](const Session* session) { return session->apart_; });
  std::vector<Session*> seated;
  for (Session* session : sessions_)
    if (session->memory_.has_value() && session->apart_ == apart) seated.push_back(session);
  return seated;
}

std::vector<Evictor::Seat> MemoryCoordinator::seats() const {
  std::vector<Evictor::Seat> seats;
  for (Session* session : seated()) seats.push_back({&*session->memory_, &*session->sequence_});
  return seats;
}

void MemoryCoordinator::sync(Session& session) const {
  if (!session.memory_.has_value()) return;
  session.memory_->sync(session.sequence_->view(*evictable_), session.sequence_->size(),
                        static_cast<Position>(session.tokens_.size()));
}

int MemoryCoordinator::trained_context() const {
  return std::min(context_tokens_, model_.config().context_length);
}

bool MemoryCoordinator::outgrows_context(const Session& session) const {
  return options_.virtual_positions && session.evicts();
}

void MemoryCoordinator::close_gaps(Session& session, Position place) {
  Sequence& sequence = *session.sequence_;
  Position won = 0;
  for (Position gap = trained_context(); gap >= 1 && sequence.rope_position() > place; gap /= 2)
    won += sequence.close_gaps(gap);
  if (won > 0) sync(session);
}

void MemoryCoordinator::prepare_turn(Session& session, std::size_t tokens) {
  if (!outgrows_context(session)) return;
  // Of a turn that is longer than that, the rest gets its places as it comes.
  const int context = trained_context();
  const auto most = static_cast<std::size_t>(context / 2);
  const auto coming = static_cast<int>(std::min(tokens, most));
  if (session.sequence_->rope_position() + coming > context)
    close_gaps(session, context - context / kFreeShare - coming);
}

bool MemoryCoordinator::make_places(Session& session, int tokens) {
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

Room MemoryCoordinator::make_room(Session& session, int tokens, bool may_drop) {
  share_pins(/*may_take=*/false);
  std::vector<Position> cuts;
  const Position size = session.sequence_->size();
  if (session.memory_.has_value()) cuts = session.memory_->cuts(size, size + tokens);
  if (session.evicts()) {
    const Evictor::Seat seat{&*session.memory_, &*session.sequence_};
    const std::uint64_t missing = session.memory_->missing_bytes(tokens, cuts.size());
    if (!evictor_->free_own(seat, missing, may_drop)) return {Room::Refusal::kBudget, missing};
  }
  const auto append = [&] {
    return with_second_try([&] { return session.sequence_->try_append(tokens, cuts); },
                           [&](std::uint64_t bytes) { return prefixes_give_way(bytes); });
  };
  Room room = append();
  for (int attempt = 0; !room && evictor_.has_value() && attempt < kMostAttempts; ++attempt) {
    if (room.refusal != Room::Refusal::kBudget) break;
    const bool freed = evictor_->free(seats(), room.missing_bytes << attempt, may_drop);
    if (!may_drop || (!freed && !share_pins(/*may_take=*/true))) attempt = kMostAttempts;
    room = append();
  }
  if (room) sync(session);
  return room;
}

int MemoryCoordinator::make_room_for_some(Session& session, int tokens, Room& room) {
  if (session.evicts()) {
    const int smallest = kSmallestPassPages * options_.page_tokens;
    for (; tokens > smallest; tokens = std::max(smallest, tokens / 2)) {
      if (!make_places(session, tokens)) continue;
      room = make_room(session, tokens, /*may_drop=*/false);
      if (room) return tokens;
    }
  }
  for (; tokens > 0; tokens = session.evicts() ? tokens / 2 : 0) {
    room = Room();
    if (!make_places(session, tokens)) continue;
    room = make_room(session, tokens);
    if (room) return tokens;
  }
  return 0;
}

Status MemoryCoordinator::no_room(const Session& session, int tokens, const Room& room) const {
  const std::uint64_t own =
      session.memory_ ? session.memory_->options().budget_bytes : KvBudget::kUnlimited;
  if (room) {
    return make_status(StatusCode::kResourceExhausted,
                       "the context of {} tokens is full: {} more after {} find no place, since "
                       "what the session still holds is protected",
                       context_tokens_, tokens, session.tokens_.size());
  }
  if (room.refusal != Room::Refusal::kBudget) {
    return make_status(StatusCode::kResourceExhausted,
                       "this machine has no memory for {} more tokens after {}; a --kv-budget sets "
                       "an end before that",
                       tokens, session.tokens_.size());
  }
  const std::string held = session.evicts() ? session.memory_->protection() : "";
  return make_status(
      StatusCode::kResourceExhausted,
      "the KV budget of {} is full: {} more {} after {} would take {} that are not free{}{}",
      format_bytes(std::min(own, cache_.budget().limit_bytes())), tokens,
      tokens == 1 ? "token" : "tokens", session.tokens_.size(), format_bytes(room.missing_bytes),
      held.empty() ? "" : "; what the session holds is protected: ", held);
}

bool MemoryCoordinator::prefixes_give_way(std::uint64_t bytes) {
  return shared_ != nullptr && shared_->give_way(bytes) > 0;
}

PassEvidence::Layers MemoryCoordinator::layers() const {
  return {groups_, *evictable_, model_.config().heads};
}

void MemoryCoordinator::ask_evidence(Session& session, PassEvidence& evidence,
                                     SequenceSlice& slice) {
  if (!session.memory_.has_value()) return;
  evidence.ask(*session.memory_, layers(), slice.views, session.probes_, slice);
}

void MemoryCoordinator::tell_evidence(Session& session, const PassEvidence& evidence,
                                      const SequenceSlice& slice) {
  if (!session.memory_.has_value()) return;
  sync(session);
  evidence.tell(layers(), slice, *session.memory_);
}

void MemoryCoordinator::cap_pins(Session& session, std::size_t sharers) const {
  const auto half = [](std::uint64_t budget) {
    return budget == KvBudget::kUnlimited ? budget : budget / 2;
  };
  session.pin_sharers_ = sharers;
  session.memory_->cap_pins(std::min(half(session.memory_options_.budget_bytes),
                                     half(options_.kv_budget_bytes) / sharers));
}

bool MemoryCoordinator::share_pins(bool may_take) {
  const std::vector<Session*> sharing = seated();
  bool took = false;
  for (Session* session : sharing) {
    if (session->pin_sharers_ == sharing.size()) continue;
    const bool takes = session->pin_sharers_ < sharing.size();
    if (takes && !may_take) continue;
    cap_pins(*session, sharing.size());
    took = took || takes;
  }
  return took;
}

void MemoryCoordinator::take_key_evidence(Session& session) {
  if (!session.memory_.has_value()) return;
  SessionMemory& memory = *session.memory_;
  if (!memory.wants(EvidenceKind::kKeySimilarity)) return;
  const KvPageLayout& layout = groups_.groups[evictable_->index()].layout;
  const std::uint64_t bytes = KeyDirections::page_bytes(layout);
  auto unread = memory.unread_keys(kMostKeysRead);
  if (!unread.empty() && cache_.budget().missing_bytes(unread.size() * bytes) > 0) {
    evictor_->free(seats(), unread.size() * bytes);
    unread = memory.unread_keys(kMostKeysRead);  // what is left of them
  }
  const PagedKvView view = session.sequence_->view(*evictable_);
  for (const std::size_t page : unread) {
    auto charge = cache_.budget().try_reserve(bytes);
    if (!charge) break;  // the next pass asks again
    memory.read_keys(page, view.pages[page], layout, *std::move(charge));
  }
  memory.observe_keys(kMostKeysJudged);
}

Status MemoryCoordinator::shrink(Session& session, std::uint64_t bytes) {
  if (!session.evicts()) {
    return Status(StatusCode::kInvalidArgument,
                  "this session never evicts: it has no budget, or the policy \"none\"");
  }
  const Evictor::Seat seat{&*session.memory_, &*session.sequence_};
  const std::uint64_t held = session.memory_->tracked_bytes();
  if (held <= bytes || evictor_->free_own(seat, held - bytes)) return Status();
  return make_status(StatusCode::kResourceExhausted,
                     "the session's {} cannot shrink to {}: what is protected takes more",
                     format_bytes(held), format_bytes(bytes));
}

int MemoryCoordinator::discard_tail(Session& session, std::size_t coming) {
  if (!session.memory_.has_value()) return 0;
  const SessionMemory& memory = *session.memory_;
  const auto size = static_cast<Position>(session.tokens_.size());
  const Position start = recompute_start(memory, size, session.sequence_->earliest_cut(), coming,
                                         refill_bytes(memory, cache_.budget()));
  const int tokens = size - start;
  if (tokens == 0) return 0;
  MEMDECAY_CHECK(session.sequence_->try_truncate(start));
  session.tokens_.resize(static_cast<std::size_t>(start));
  sync(session);
  session.memory_->recomputed(tokens);
  return tokens;
}

std::uint64_t MemoryCoordinator::held_bytes() const {
  std::uint64_t bytes = evictor_ ? evictor_->held_bytes() : 0;
  for (const Session* session : sessions_)
    if (session->memory_.has_value()) bytes += session->memory_->held_bytes();
  return bytes;
}

void MemoryCoordinator::tend(std::size_t pass_rows) {
  if (shared_ != nullptr) shared_->hold_limit();
  if (!evictor_.has_value()) return;
  const std::vector<Evictor::Seat> all = seats();
  const double now = steady_seconds();
  std::size_t packed = std::min(kMostPackedPages, kPackedPages + pass_rows / kRowsPerPackedPage);
  for (const Evictor::Seat& seat : all) {
    seat.memory->advance(now);
    while (const std::size_t pages = evictor_->pack(seat, packed)) packed -= pages;
    evictor_->convert_sealed(seat);
  }
  evictor_->relieve(all, kTendedPages * page_bytes());
}

}  // namespace memdecay
