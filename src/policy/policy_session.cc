#include "policy/policy_session.h"

#include <algorithm>
#include <cmath>

namespace memdecay {
namespace {

constexpr std::int32_t kMostTokens = 1 << 30;  // positions are 32 bits
constexpr std::int32_t kMostNumber = 1 << 24;  // of rounds and items: they index arrays

template <typename... Args>
Status invalid(fmt::format_string<Args...> format, Args&&... args) {
  return make_status(StatusCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

Status check(const AppendRequest& request, std::int64_t tokens) {
  if (request.tokens <= 0 || request.tokens > kMostTokens - tokens) {
    return invalid("{} tokens cannot be added after {}", request.tokens, tokens);
  }
  if (request.exact_tokens < 0 || request.exact_tokens > request.tokens) {
    return invalid("{} of {} tokens cannot be exact values", request.exact_tokens, request.tokens);
  }
  const auto fits = [](std::int32_t number) { return number >= -1 && number < kMostNumber; };
  if (!fits(request.tool_round) || !fits(request.item)) {
    return invalid("tool rounds and items are numbered from 0 to {}, or -1 for none",
                   kMostNumber - 1);
  }
  return Status();
}

}  // namespace

Result<PolicySession> PolicySession::open(const PolicySessionOptions& options) {
  if (options.page_tokens <= 0 || options.page_tokens > 4096) {
    return invalid("a page cannot hold {} tokens: 1 to 4096 can be", options.page_tokens);
  }
  if (options.bytes_per_token == 0 || options.bytes_per_token > (1ULL << 40)) {
    return invalid("a token cannot take {} bytes", options.bytes_per_token);
  }
  PolicySession session(options);
  MEMDECAY_ASSIGN_OR_RETURN(session.policy_, make_policy(options.policy, options.options));
  return session;
}

bool PolicySession::continues_last(const AppendRequest& request) const {
  if (pages_.empty()) return false;
  const PageMeta& last = pages_.back().meta;
  return pages_.back().live && !last.sealed && last.region == request.region &&
         last.pinned == request.pinned && last.tool_round == request.tool_round &&
         last.tool_core == request.tool_core && last.item == request.item;
}

void PolicySession::price(Page& page) const {
  PageMeta& meta = page.meta;
  meta.bytes = static_cast<std::uint64_t>(meta.tokens) * options_.bytes_per_token;
  for (std::size_t form = 0; form < kPageFormCount; ++form) {
    const auto share = static_cast<double>(options_.form_share[form]);
    meta.forms[form] = {
        static_cast<std::uint64_t>(std::llround(static_cast<double>(meta.bytes) * share)),
        options_.form_error[form]};
  }
  meta.exact_share = static_cast<float>(page.exact_tokens) / static_cast<float>(meta.tokens);
}

void PolicySession::seal() {
  if (pages_.empty() || !pages_.back().live || pages_.back().meta.sealed) return;
  pages_.back().meta.sealed = true;
  policy_->track(pages_.back().meta);
}

Result<TrackedPageId> PolicySession::append(const AppendRequest& request) {
  MEMDECAY_RETURN_IF_ERROR(check(request, time_.step));
  std::optional<TrackedPageId> first;
  std::int32_t left = request.tokens;
  std::int32_t exact_left = request.exact_tokens;
  while (left > 0) {
    if (!continues_last(request)) {
      seal();
      Page page;
      page.live = true;
      page.meta.id = TrackedPageId(static_cast<std::int32_t>(pages_.size()));
      page.meta.region = request.region;
      page.meta.position = static_cast<Position>(time_.step);
      page.meta.born_step = time_.step;
      page.meta.pinned = request.pinned;
      page.meta.sealed = false;
      page.meta.tool_round = request.tool_round;
      page.meta.tool_core = request.tool_core;
      page.meta.item = request.item;
      pages_.push_back(page);
    }
    Page& page = pages_.back();
    if (!first.has_value()) first = page.meta.id;
    const std::int32_t added = std::min(left, options_.page_tokens - page.meta.tokens);
    // Exact values are taken to lie evenly in what is added.
    const std::int32_t exact = static_cast<std::int32_t>(std::int64_t{exact_left} * added / left);
    page.meta.tokens += added;
    page.exact_tokens += exact;
    left -= added;
    exact_left -= exact;
    page.meta.sealed = page.meta.tokens == options_.page_tokens;
    price(page);
    policy_->track(page.meta);
    time_.step += added;
    policy_->advance(time_);
  }
  return *first;
}

bool PolicySession::holds(TrackedPageId page) const {
  return page.value() >= 0 && page.index() < pages_.size() && pages_[page.index()].live;
}

Status PolicySession::observe(const EvidenceBatch& batch) {
  for (const PageEvidence& evidence : batch.pages) {
    if (!std::isfinite(evidence.value)) {
      return invalid("the evidence of page {} is not a finite number", evidence.page.value());
    }
  }
  policy_->observe(batch);
  return Status();
}

Status PolicySession::advance(double seconds) {
  if (!std::isfinite(seconds) || seconds < time_.seconds) {
    return invalid("time cannot go from {} s to {} s", time_.seconds, seconds);
  }
  time_.seconds = seconds;
  policy_->advance(time_);
  return Status();
}

Status PolicySession::apply(std::span<const PlanAction> actions) {
  for (const PlanAction& action : actions) {
    if (!holds(action.page)) return invalid("page {} is not held", action.page.value());
    const PageMeta& meta = pages_[action.page.index()].meta;
    if (!action.drop && action.form <= meta.form) {
      return invalid("page {} is {} already", action.page.value(), page_form_name(meta.form));
    }
  }
  for (const PlanAction& action : actions) {
    if (!holds(action.page)) continue;  // named twice
    Page& page = pages_[action.page.index()];
    if (action.drop) {
      page.live = false;
      policy_->release(action.page);
      continue;
    }
    if (action.form <= page.meta.form) continue;
    page.meta.form = action.form;
    page.meta.bytes = page.meta.forms[form_index(action.form)].bytes;
    policy_->track(page.meta);
  }
  return Status();
}

void PolicySession::end_item(std::int32_t item) {
  if (item < 0) return;
  for (Page& page : pages_) {
    if (page.meta.item != item) continue;
    page.meta.item = kNoItem;
    if (page.live) policy_->track(page.meta);
  }
}

Result<Explanation> PolicySession::explain(TrackedPageId page) const {
  if (!holds(page)) {
    return make_status(StatusCode::kNotFound, "page {} is not held", page.value());
  }
  return policy_->explain(page);
}

}  // namespace memdecay
