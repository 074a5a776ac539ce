// How Engine keeps its sessions within the budget: room, evidence, plans.
#include <algorithm>
#include <optional>

#include "core/check.h"
#include "core/steady_clock.h"
#include "core/units.h"
#include "engine/engine.h"
#include "engine/memory/second_try.h"
#include "policy/policies/policy_spec.h"

namespace memdecay {
namespace {

/// One layer in so many has its deletion error measured in a pass, another one the next time. A
/// number that divides the layers makes every pass cost the same.
int probe_stride(int layers) {
  for (int stride = 15; stride > 8; --stride)
    if (layers % stride == 0) return stride;
  return 8;
}

/// The deletion error is measured where a pass completes so many tokens: a probed layer is attended
/// once more, and what a page is worth does not change from one token to the next.
constexpr Position kProbeTokens = 4;

/// Pages' worth of bytes that one call of tend_memory() may free: a step must not wait for more.
constexpr std::uint64_t kTendedPages = 2;
/// Pages that one call of tend_memory() may copy to pack them: after a pass of one token, and one
/// more for so many rows of the pass, since a longer pass hides more.
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

void Engine::initialize_memory() {
  for (std::size_t i = 0; i < groups_.groups.size(); ++i)
    if (groups_.groups[i].window == 0) evictable_ = LayerGroupId(static_cast<int>(i));
  if (evictable_.has_value()) evictor_.emplace(*cache_, *evictable_);
}

std::uint64_t Engine::page_bytes() const {
  return PagePool::stride_bytes_for(groups_.groups[evictable_->index()].layout);
}

bool Engine::evicts(const Session& session) {
  return session.memory_.has_value() && session.memory_->options().evicts;
}

Result<EvictionPolicyHandle> Engine::make_session_policy(const SessionOptions& options) const {
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

Status Engine::add_memory(Session& session, SessionOptions options) {
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
  MEMDECAY_ASSIGN_OR_RETURN(EvictionPolicyHandle policy, make_session_policy(options));
  // What is kept to judge a page by is part of what it costs.
  const std::uint64_t sketch_bytes = memory.evicts && policy->wants(EvidenceKind::kKeySimilarity)
                                         ? KeyDirections::page_bytes(layout)
                                         : 0;
  memory.forms[form_index(PageForm::kF16)] = {page_bytes(), 0};
  // A budget too small for a page to change its form in still drops pages.
  const bool has_spare = evictor_->hold_spare() ||
                         (prefixes_give_way(evictor_->spare_bytes()) && evictor_->hold_spare());
  if (has_spare) MEMDECAY_RETURN_IF_ERROR(choose_forms(*options.kv_forms, memory));
  for (FormCost& form : memory.forms)
    if (form.bytes > 0) form.bytes += sketch_bytes;
  if (memory.fixed_form.has_value() &&
      memory.forms[form_index(form_of(*memory.fixed_form))].bytes == 0) {
    return make_status(StatusCode::kResourceExhausted,
                       "pages cannot become {}: the KV budget is too small for one to change its "
                       "form in, or the engine was made without pools for it",
                       kv_format_name(*memory.fixed_form));
  }
  memory.demotes = options.kv_forms == KvForms::kAuto && has_spare;
  session.memory_.emplace(std::move(policy), memory);
  session.memory_->advance(steady_seconds());  // its clock begins here
  session.memory_options_ = std::move(options);
  cap_pins(session, 1);
  return Status();
}

/// The sessions whose pages may go: while some stand apart, those alone.
std::vector<Session*> Engine::seated() const {
  const bool apart = std::any_of(sessions_.begin(), sessions_.end(),
                                 [](const Session* session) { return session->apart_; });
  std::vector<Session*> seated;
  for (Session* session : sessions_)
    if (session->memory_.has_value() && session->apart_ == apart) seated.push_back(session);
  return seated;
}

std::vector<Evictor::Seat> Engine::seats() const {
  std::vector<Evictor::Seat> seats;
  for (Session* session : seated()) seats.push_back({&*session->memory_, &*session->sequence_});
  return seats;
}

void Engine::label(Session& session, PromptLabels labels) {
  if (session.memory_.has_value()) session.memory_->label(std::move(labels));
}

void Engine::sync_memory(Session& session) {
  if (!session.memory_.has_value()) return;
  session.memory_->sync(session.sequence_->view(*evictable_), session.sequence_->size(),
                        static_cast<Position>(session.tokens_.size()));
}

Room Engine::make_room(Session& session, int tokens, bool may_drop) {
  share_pins(/*may_take=*/false);
  std::vector<Position> cuts;
  const Position size = session.sequence_->size();
  if (session.memory_.has_value()) cuts = session.memory_->cuts(size, size + tokens);
  if (evicts(session)) {
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
  if (room) sync_memory(session);
  return room;
}

int Engine::make_room_for_some(Session& session, int tokens, Room& room) {
  if (evicts(session)) {
    const int smallest = kSmallestPassPages * options_.page_tokens;
    for (; tokens > smallest; tokens = std::max(smallest, tokens / 2)) {
      if (!make_places(session, tokens)) continue;
      room = make_room(session, tokens, /*may_drop=*/false);
      if (room) return tokens;
    }
  }
  for (; tokens > 0; tokens = evicts(session) ? tokens / 2 : 0) {
    room = Room();
    if (!make_places(session, tokens)) continue;
    room = make_room(session, tokens);
    if (room) return tokens;
  }
  return 0;
}

void Engine::ask_evidence(Session& session, PassEvidence& evidence, SequenceSlice& slice) {
  const SessionMemory& memory = *session.memory_;
  const bool all_queries = memory.wants(EvidenceKind::kAttentionMass);
  if (all_queries || memory.wants(EvidenceKind::kLastQueryMass)) {
    for (std::size_t group = 0; group < groups_.groups.size(); ++group) {
      const auto view = session.sequence_->view(LayerGroupId(static_cast<int>(group)));
      evidence.mass_of_group.push_back(evidence.mass.emplace_back(view.pages.size()).data());
    }
    slice.page_mass = evidence.mass_of_group;
    slice.mass_from_row = all_queries ? 0 : slice.rows - 1;
  }
  const Position end = slice.first_position + slice.rows;
  const bool due = end / kProbeTokens > slice.first_position / kProbeTokens;
  if (!due || !memory.wants(EvidenceKind::kDeletionError)) return;
  evidence.pages.resize(session.sequence_->view(*evictable_).pages.size());
  const int stride = probe_stride(groups_.groups[evictable_->index()].layout.layers);
  evidence.probe = {-1, stride, session.probes_++ % stride, evidence.pages, 0};
  slice.probe = &evidence.probe;
}

void Engine::observe_pass(Session& session, const PassEvidence& evidence,
                          const SequenceSlice& slice) {
  if (!session.memory_.has_value()) return;
  sync_memory(session);
  SessionMemory& memory = *session.memory_;
  const Position last = slice.first_position + slice.rows - 1;
  const QueryPhase phase = memory.phase_at(last);
  if (!evidence.mass.empty()) {
    std::vector<float> values = evidence.mass[evictable_->index()];
    const float heads = static_cast<float>(model_->config().heads) *
                        static_cast<float>(groups_.groups[evictable_->index()].layout.layers);
    for (float& value : values) value /= heads;
    const bool all_queries = memory.wants(EvidenceKind::kAttentionMass);
    memory.observe(all_queries ? EvidenceKind::kAttentionMass : EvidenceKind::kLastQueryMass, phase,
                   values);
  }
  if (evidence.probe.heads > 0) {
    std::vector<float> values;
    for (const PageAttention& page : evidence.pages)
      values.push_back(0.5F * (page.mean_error + page.max_error));
    memory.observe(EvidenceKind::kDeletionError, phase, values);
  }
}

void Engine::cap_pins(Session& session, std::size_t sharers) const {
  const auto half = [](std::uint64_t budget) {
    return budget == KvBudget::kUnlimited ? budget : budget / 2;
  };
  session.pin_sharers_ = sharers;
  session.memory_->cap_pins(std::min(half(session.memory_options_.budget_bytes),
                                     half(options_.kv_budget_bytes) / sharers));
}

bool Engine::share_pins(bool may_take) {
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

void Engine::take_key_evidence(Session& session) {
  if (!session.memory_.has_value()) return;
  SessionMemory& memory = *session.memory_;
  if (!memory.wants(EvidenceKind::kKeySimilarity)) return;
  const KvPageLayout& layout = groups_.groups[evictable_->index()].layout;
  const std::uint64_t bytes = KeyDirections::page_bytes(layout);
  auto unread = memory.unread_keys(kMostKeysRead);
  if (!unread.empty() && cache_->budget().missing_bytes(unread.size() * bytes) > 0) {
    evictor_->free(seats(), unread.size() * bytes);
    unread = memory.unread_keys(kMostKeysRead);  // what is left of them
  }
  const PagedKvView view = session.sequence_->view(*evictable_);
  for (const std::size_t page : unread) {
    auto charge = cache_->budget().try_reserve(bytes);
    if (!charge) break;  // the next pass asks again
    memory.read_keys(page, view.pages[page], layout, *std::move(charge));
  }
  memory.observe_keys(kMostKeysJudged);
}

Status Engine::shrink(Session& session, std::uint64_t bytes) {
  MEMDECAY_CHECK(!session.busy_);
  if (!evicts(session)) {
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

std::vector<PositionRun> Engine::held_tokens(const Session& session) const {
  std::vector<PositionRun> held;
  if (!evictable_.has_value()) return held;
  const PageTable& table = session.sequence_->table(*evictable_);
  const auto add = [&](const PositionRun& run) {
    if (run.tokens == 0) return;
    if (!held.empty() && held.back().end() == run.first) {
      held.back().tokens += run.tokens;
    } else {
      held.push_back(run);
    }
  };
  for (const KvPageRef& page : table.view().pages) {
    const auto runs = table.runs().of(page);
    if (runs.empty()) add({page.first_position, page.filled});
    for (const PositionRun& run : runs) add(run);
  }
  return held;
}

std::uint64_t Engine::other_budget_bytes() const {
  std::uint64_t bytes = evictor_ ? evictor_->held_bytes() : 0;
  for (const Session* session : sessions_)
    if (session->memory_.has_value()) bytes += session->memory_->held_bytes();
  return bytes;
}

void Engine::tend_memory() {
  if (shared_ != nullptr) shared_->hold_limit();
  if (!evictor_.has_value()) return;
  const std::vector<Evictor::Seat> all = seats();
  const double now = steady_seconds();
  std::size_t packed = std::min(kMostPackedPages, kPackedPages + pass_rows_ / kRowsPerPackedPage);
  for (const Evictor::Seat& seat : all) {
    seat.memory->advance(now);
    while (const std::size_t pages = evictor_->pack(seat, packed)) packed -= pages;
    evictor_->convert_sealed(seat);
  }
  evictor_->relieve(all, kTendedPages * page_bytes());
}

}  // namespace memdecay
