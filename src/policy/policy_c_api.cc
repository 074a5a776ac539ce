// The C functions of include/memdecay/policy.h: checks what came over the border, then
// PolicySession.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include <memdecay/policy.h>
#include "policy/policy_session.h"

struct memdecay_policy_session {
  memdecay::PolicySession session;
  std::string message;
};

namespace {

using memdecay::EvidenceKind;
using memdecay::PageForm;
using memdecay::PlanAction;
using memdecay::QueryPhase;
using memdecay::Region;
using memdecay::Status;
using memdecay::StatusCode;
using memdecay::TrackedPageId;

void copy_text(std::string_view text, char* to, size_t size) {
  if (to == nullptr || size == 0) return;
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

memdecay_status status_of(const Status& status) {
  if (status.ok()) return MEMDECAY_OK;
  return status.code() == StatusCode::kNotFound ? MEMDECAY_NOT_FOUND : MEMDECAY_INVALID_ARGUMENT;
}

memdecay_status answer(memdecay_policy_session* session, const Status& status) {
  session->message = status.message();
  return status_of(status);
}

Status invalid(const char* why) {
  return Status(StatusCode::kInvalidArgument, why);
}

bool in_range(int32_t value, int32_t end) {
  return value >= 0 && value < end;
}

constexpr const char* kOutOfMemory = "out of memory";  // short: taking it allocates nothing

// Bytes up to the last member of version 1: the least that a caller's struct has.
constexpr size_t kFirstOptions =
    offsetof(memdecay_policy_options, random_seed) + sizeof(memdecay_policy_options::random_seed);
constexpr size_t kFirstSpan =
    offsetof(memdecay_policy_span, exact_tokens) + sizeof(memdecay_policy_span::exact_tokens);
constexpr size_t kFirstRequest =
    offsetof(memdecay_policy_request, gentle) + sizeof(memdecay_policy_request::gentle);

/// What the caller's struct says, over the defaults of the members that it does not have yet.
template <typename Struct>
std::optional<Struct> read_struct(const Struct* from, size_t first_size, void (*init)(Struct*)) {
  if (from == nullptr || from->struct_size < first_size || from->struct_size > sizeof(Struct))
    return std::nullopt;
  Struct own;
  init(&own);
  std::memcpy(&own, from, from->struct_size);
  return own;
}

/// Runs what may allocate; running out of memory is a status, not an exception.
template <typename Work>
memdecay_status guarded(memdecay_policy_session* session, Work work) {
  if (session == nullptr) return MEMDECAY_INVALID_ARGUMENT;
  try {
    return answer(session, work());
  } catch (...) {  // std::bad_alloc and std::length_error are all that is thrown
    session->message = kOutOfMemory;
    return MEMDECAY_OUT_OF_MEMORY;
  }
}

memdecay::PolicySessionOptions session_options(const memdecay_policy_options& from) {
  memdecay::PolicySessionOptions options;
  if (from.policy != nullptr) options.policy = from.policy;
  options.page_tokens = from.page_tokens;
  options.bytes_per_token = from.bytes_per_token;
  options.options.protect_prefix = from.protect_prefix != 0;
  options.options.random_seed = from.random_seed;
  auto& protection = options.options.memdecay.protection;
  protection.sink_tokens = std::max(from.sink_tokens, 0);
  protection.newest_pages = std::max(from.newest_pages, 0);
  protection.lag_rounds = std::max(from.lag_rounds, 0);
  protection.floor_share = from.floor_share;
  protection.pin_cap_bytes = from.pin_cap_bytes;
  options.options.memdecay.ladder.enabled = from.demote != 0;
  return options;
}

Status open_session(const memdecay_policy_options* options, memdecay_policy_session** session) {
  if (session == nullptr) return invalid("session is NULL");
  const auto known = read_struct(options, kFirstOptions, memdecay_policy_options_init);
  if (!known.has_value())
    return invalid("the options are NULL or their struct_size is not their size");
  if (!(known->floor_share >= 0 && known->floor_share <= 1)) {
    return invalid("floor_share is not between 0 and 1");
  }
  auto opened = memdecay::PolicySession::open(session_options(*known));
  if (!opened.ok()) return opened.status();
  *session = new memdecay_policy_session{std::move(opened).value(), {}};
  return Status();
}

Status append_span(memdecay::PolicySession& session, const memdecay_policy_span* span,
                   int32_t* first_page) {
  const auto known = read_struct(span, kFirstSpan, memdecay_policy_span_init);
  if (!known.has_value()) return invalid("the span is NULL or its struct_size is not its size");
  span = &*known;
  if (!in_range(span->region, memdecay::kRegionCount)) return invalid("there is no such region");
  memdecay::AppendRequest request;
  request.tokens = span->tokens;
  request.region = static_cast<Region>(span->region);
  request.pinned = span->pinned != 0;
  request.tool_round = span->tool_round;
  request.tool_core = span->tool_core != 0;
  request.item = span->item;
  request.exact_tokens = span->exact_tokens;
  MEMDECAY_ASSIGN_OR_RETURN(const TrackedPageId first, session.append(request));
  if (first_page != nullptr) *first_page = first.value();
  return Status();
}

Status make_plan(const memdecay::PolicySession& session, const memdecay_policy_request* request,
                 memdecay_policy_action* actions, size_t capacity,
                 memdecay_policy_plan_summary* summary) {
  const auto known = read_struct(request, kFirstRequest, memdecay_policy_request_init);
  if (!known.has_value()) return invalid("the request is NULL or its struct_size is not its size");
  request = &*known;
  if (actions == nullptr && capacity > 0) return invalid("there is capacity but no array");
  memdecay::PlanRequest wanted;
  wanted.budget_bytes = request->budget_bytes;
  wanted.urgency = request->gentle != 0 ? memdecay::Urgency::kGentle : memdecay::Urgency::kPressed;
  const memdecay::EvictionPlan plan = session.plan(wanted);
  for (size_t i = 0; i < std::min(capacity, plan.actions.size()); ++i) {
    const PlanAction& action = plan.actions[i];
    const int32_t form = action.drop ? MEMDECAY_FORM_GONE : static_cast<int32_t>(action.form);
    actions[i] = {action.page.value(), form, action.freed_bytes};
  }
  if (summary != nullptr) *summary = {plan.actions.size(), plan.freed_bytes, plan.missing_bytes};
  return Status();
}

}  // namespace

void memdecay_policy_options_init(memdecay_policy_options* options) {
  if (options == nullptr) return;
  const memdecay::PolicySessionOptions defaults;
  const auto& protection = defaults.options.memdecay.protection;
  *options = {};
  options->struct_size = sizeof *options;
  options->policy = "memdecay";
  options->page_tokens = defaults.page_tokens;
  options->sink_tokens = protection.sink_tokens;
  options->newest_pages = protection.newest_pages;
  options->lag_rounds = protection.lag_rounds;
  options->floor_share = protection.floor_share;
  options->pin_cap_bytes = protection.pin_cap_bytes;
  options->random_seed = defaults.options.random_seed;
}

void memdecay_policy_span_init(memdecay_policy_span* span) {
  if (span == nullptr) return;
  *span = {};
  span->struct_size = sizeof *span;
  span->region = MEMDECAY_REGION_ORDINARY;
  span->tool_round = memdecay::kNoToolRound;
  span->item = memdecay::kNoItem;
}

void memdecay_policy_request_init(memdecay_policy_request* request) {
  if (request == nullptr) return;
  *request = {};
  request->struct_size = sizeof *request;
}

memdecay_status memdecay_policy_open(const memdecay_policy_options* options,
                                     memdecay_policy_session** session, char* message,
                                     size_t message_size) {
  if (session != nullptr) *session = nullptr;
  try {
    const Status status = open_session(options, session);
    copy_text(status.message(), message, message_size);
    return status_of(status);
  } catch (...) {
    copy_text(kOutOfMemory, message, message_size);
    return MEMDECAY_OUT_OF_MEMORY;
  }
}

void memdecay_policy_close(memdecay_policy_session* session) {
  delete session;
}

const char* memdecay_policy_message(const memdecay_policy_session* session) {
  return session == nullptr ? "there is no session" : session->message.c_str();
}

memdecay_status memdecay_policy_append(memdecay_policy_session* session,
                                       const memdecay_policy_span* span, int32_t* first_page) {
  return guarded(session, [&] { return append_span(session->session, span, first_page); });
}

memdecay_status memdecay_policy_observe(memdecay_policy_session* session, int32_t kind,
                                        int32_t phase, const int32_t* pages, const float* values,
                                        size_t count) {
  return guarded(session, [&] {
    if (!in_range(kind, memdecay::kEvidenceKindCount))
      return invalid("there is no such kind of evidence");
    if (!in_range(phase, memdecay::kQueryPhaseCount)) return invalid("there is no such phase");
    if (count > 0 && (pages == nullptr || values == nullptr)) {
      return invalid("there is a count but no array");
    }
    std::vector<memdecay::PageEvidence> evidence;
    evidence.reserve(count);
    for (size_t i = 0; i < count; ++i) evidence.push_back({TrackedPageId(pages[i]), values[i]});
    return session->session.observe(
        {static_cast<EvidenceKind>(kind), static_cast<QueryPhase>(phase), evidence});
  });
}

memdecay_status memdecay_policy_advance(memdecay_policy_session* session, double seconds) {
  return guarded(session, [&] { return session->session.advance(seconds); });
}

memdecay_status memdecay_policy_plan(memdecay_policy_session* session,
                                     const memdecay_policy_request* request,
                                     memdecay_policy_action* actions, size_t capacity,
                                     memdecay_policy_plan_summary* summary) {
  return guarded(session,
                 [&] { return make_plan(session->session, request, actions, capacity, summary); });
}

memdecay_status memdecay_policy_apply(memdecay_policy_session* session,
                                      const memdecay_policy_action* actions, size_t count) {
  return guarded(session, [&] {
    if (actions == nullptr && count > 0) return invalid("there is a count but no array");
    std::vector<PlanAction> plan;
    plan.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      if (!in_range(actions[i].form, MEMDECAY_FORM_GONE + 1)) return invalid("no such form");
      const bool drop = actions[i].form == MEMDECAY_FORM_GONE;
      const auto form = drop ? PageForm::kF16 : static_cast<PageForm>(actions[i].form);
      plan.push_back({TrackedPageId(actions[i].page), drop, form, actions[i].freed_bytes});
    }
    return session->session.apply(plan);
  });
}

memdecay_status memdecay_policy_end_item(memdecay_policy_session* session, int32_t item) {
  return guarded(session, [&] {
    session->session.end_item(item);
    return Status();
  });
}

memdecay_status memdecay_policy_explain(memdecay_policy_session* session, int32_t page, char* text,
                                        size_t size) {
  return guarded(session, [&] {
    const auto why = session->session.explain(TrackedPageId(page));
    copy_text(why.ok() ? why->sentence : "", text, size);
    return why.status();
  });
}

uint64_t memdecay_policy_live_bytes(const memdecay_policy_session* session) {
  return session == nullptr ? 0 : session->session.live_bytes();
}

int32_t memdecay_policy_page_count(const memdecay_policy_session* session) {
  return session == nullptr ? 0 : session->session.page_count();
}

int32_t memdecay_policy_holds(const memdecay_policy_session* session, int32_t page) {
  return session != nullptr && session->session.holds(TrackedPageId(page)) ? 1 : 0;
}
