#include "engine/session_memory.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "policy/exact_values.h"

namespace memdecay {

PageForm form_of(KvFormat format) {
  switch (format) {
    case KvFormat::kInt8:
      return PageForm::kInt8;
    case KvFormat::kK8V4:
      return PageForm::kK8V4;
    case KvFormat::kInt4:
      return PageForm::kInt4;
    default:
      return PageForm::kF16;  // and fp32: the form that is written
  }
}

KvFormat format_of(PageForm form) {
  constexpr std::array<KvFormat, kPageFormCount> kFormats = {KvFormat::kF16, KvFormat::kInt8,
                                                             KvFormat::kK8V4, KvFormat::kInt4};
  return kFormats[form_index(form)];
}

SessionMemory::SessionMemory(EvictionPolicyHandle policy, const SessionMemoryOptions& options)
    : policy_(std::move(policy)), options_(options), watermarks_(options.watermarks) {}

SessionMemory SessionMemory::fork(EvictionPolicyHandle policy) const {
  SessionMemory copy(std::move(policy), options_);
  copy.labels_ = labels_;
  copy.pages_ = pages_;
  copy.metas_ = metas_;
  copy.free_ids_ = free_ids_;
  copy.time_ = time_;
  copy.size_ = size_;
  copy.evicted_tokens_ = evicted_tokens_;
  copy.evicted_pages_ = evicted_pages_;
  copy.recomputed_tokens_ = recomputed_tokens_;
  for (const Page& page : copy.pages_) copy.policy_->track(copy.meta(page));
  copy.policy_->advance(copy.time_);
  return copy;
}

Position SessionMemory::labelled() const {
  return labels_.regions.empty() ? 0 : labels_.regions.back().tokens.end;
}

/// The run that holds the position. REQUIRES: position < labelled().
std::size_t SessionMemory::run_at(Position position) const {
  const auto after =
      std::upper_bound(labels_.regions.begin(), labels_.regions.end(), position,
                       [](Position at, const RegionSpan& span) { return at < span.tokens.end; });
  return static_cast<std::size_t>(after - labels_.regions.begin());
}

void SessionMemory::label(PromptLabels labels) {
  labels_ = std::move(labels);
  for (Page& page : pages_) {
    PageMeta meta = metas_[page.id.index()];
    describe(page, meta);
    if (meta.region == this->meta(page).region && meta.pinned == this->meta(page).pinned &&
        meta.tool_round == this->meta(page).tool_round &&
        meta.tool_core == this->meta(page).tool_core && meta.item == this->meta(page).item &&
        meta.exact_share == this->meta(page).exact_share) {
      continue;
    }
    metas_[page.id.index()] = meta;
    policy_->track(meta);
  }
}

std::vector<Position> SessionMemory::cuts(Position begin, Position end) const {
  std::vector<Position> cuts;
  const Position last = std::min(end - 1, labelled());  // the answer begins a page of its own
  if (begin >= end || labels_.regions.empty()) return cuts;
  for (std::size_t run = run_at(begin); run < labels_.regions.size(); ++run) {
    const Position border = region_at(run).tokens.begin;
    if (border > last) break;
    if (border >= begin && border > 0 && border <= last) cuts.push_back(border);
  }
  if (labelled() >= begin && labelled() < end) cuts.push_back(labelled());
  return cuts;
}

QueryPhase SessionMemory::phase_at(Position position) const {
  const auto at = static_cast<std::size_t>(position);
  return at < labels_.phases.size() ? labels_.phases[at] : QueryPhase::kAct;
}

/// Region and its companions from the run that most of the page's tokens lie in; the share of exact
/// values from all of them.
void SessionMemory::describe(const Page& page, PageMeta& meta) const {
  const Position begin = page.first_position;
  const Position end = begin + page.filled;
  RegionSpan best;
  best.region = Region::kRecent;
  std::int32_t most = std::max(0, end - std::max(begin, labelled()));
  for (std::size_t run = run_at(begin); run < labels_.regions.size(); ++run) {
    const RegionSpan& span = region_at(run);
    if (span.tokens.begin >= end) break;
    const std::int32_t shared = std::min(end, span.tokens.end) - std::max(begin, span.tokens.begin);
    if (shared < most || (shared == most && best.region <= span.region)) continue;
    most = shared;
    best = span;
  }
  meta.region = best.region;
  meta.pinned = best.pinned;
  meta.tool_round = best.tool_round;
  meta.tool_core = best.tool_core;
  meta.item = best.item;
  const std::size_t exact_begin = std::min(labels_.exact.size(), static_cast<std::size_t>(begin));
  const std::size_t exact_end = std::min(labels_.exact.size(), static_cast<std::size_t>(end));
  meta.exact_share =
      exact_share(std::span(labels_.exact).subspan(exact_begin, exact_end - exact_begin));
}

TrackedPageId SessionMemory::take_id() {
  if (!free_ids_.empty()) {
    const TrackedPageId id = free_ids_.back();
    free_ids_.pop_back();
    return id;
  }
  metas_.emplace_back();
  return TrackedPageId(static_cast<std::int32_t>(metas_.size()) - 1);
}

void SessionMemory::release(const Page& page) {
  policy_->release(page.id);
  if (keys_.has_value()) keys_->forget(page.id);
  free_ids_.push_back(page.id);
}

/// Tells the policy about a page that is new, grew, or was sealed.
void SessionMemory::track(Page& page, bool is_new) {
  if (is_new) page.id = take_id();
  PageMeta& meta = metas_[page.id.index()];
  if (is_new) {
    meta = PageMeta();
    meta.id = page.id;
    meta.position = page.first_position;
    meta.born_step = time_.step;
    meta.forms = options_.forms;
  }
  meta.tokens = page.filled;
  meta.sealed = page.sealed;
  meta.form = form_of(page.format);
  meta.bytes = options_.forms[form_index(meta.form)].bytes;
  describe(page, meta);
  policy_->track(meta);
  if (!page.sealed && keys_.has_value()) keys_->forget(page.id);
}

void SessionMemory::sync(const PagedKvView& view, Position size, Position computed) {
  const auto matches = [](const Page& page, const KvPageRef& ref, bool sealed) {
    return page.first_position == ref.first_position && page.filled == ref.filled &&
           page.format == ref.format && page.sealed == sealed;
  };
  const std::size_t count = view.pages.size();
  const auto sealed = [&](std::size_t i) {
    const KvPageRef& ref = view.pages[i];
    if (ref.first_position + ref.filled > computed) return false;
    return i + 1 < count || ref.filled == options_.page_tokens ||
           ref.format != options_.own_format || ref.rope_shift != 0 ||
           ref.first_position + ref.filled != size;
  };
  std::size_t same = std::min(count, pages_.size());
  const auto as_it_was = [&](std::size_t i) {
    return matches(pages_[i], view.pages[i], sealed(i));
  };
  // Appends and cuts change the tail only: walk back to the last sealed entry that is as it was.
  while (same > 0 && !(pages_[same - 1].sealed && as_it_was(same - 1))) --same;
  time_.step += std::max(0, size - size_);
  size_ = size;
  for (std::size_t i = count; i < pages_.size(); ++i) release(pages_[i]);
  pages_.resize(count);
  for (std::size_t i = same; i < count; ++i) {
    if (as_it_was(i)) continue;
    const KvPageRef& ref = view.pages[i];
    Page& page = pages_[i];
    const bool known = page.filled > 0 && page.first_position == ref.first_position;
    if (page.filled > 0 && !known) release(page);
    page.first_position = ref.first_position;
    page.filled = ref.filled;
    page.format = ref.format;
    page.sealed = sealed(i);
    track(page, !known);
  }
  policy_->advance(time_);
}

void SessionMemory::advance(double seconds) {
  time_.seconds = std::max(time_.seconds, seconds);
  policy_->advance(time_);
}

void SessionMemory::observe(EvidenceKind kind, QueryPhase phase, std::span<const float> values) {
  MEMDECAY_CHECK(values.size() == pages_.size());
  batch_.clear();
  for (std::size_t i = 0; i < values.size(); ++i) batch_.push_back({pages_[i].id, values[i]});
  policy_->observe({kind, phase, batch_});
}

std::vector<std::size_t> SessionMemory::unread_keys(int most) const {
  std::vector<std::size_t> unread;
  for (std::size_t i = pages_.size(); i-- > 0 && static_cast<int>(unread.size()) < most;) {
    const bool known = keys_.has_value() && keys_->knows(pages_[i].id);
    if (pages_[i].sealed && !known) unread.push_back(i);
  }
  return unread;
}

void SessionMemory::read_keys(std::size_t page, const KvPageRef& ref, const KvPageLayout& layout,
                              BudgetReservation charge) {
  if (!keys_.has_value()) keys_.emplace(layout);
  keys_->read(pages_[page].id, ref, std::move(charge));
}

void SessionMemory::observe_keys(int most) {
  if (!keys_.has_value()) return;
  policy_->observe({EvidenceKind::kKeySimilarity, QueryPhase::kOther, keys_->judge(most)});
}

std::size_t SessionMemory::index_of(Position first_position) const {
  const auto found = std::lower_bound(
      pages_.begin(), pages_.end(), first_position,
      [](const Page& page, Position position) { return page.first_position < position; });
  MEMDECAY_CHECK(found != pages_.end() && found->first_position == first_position);
  return static_cast<std::size_t>(found - pages_.begin());
}

const SessionMemory::Page& SessionMemory::page(TrackedPageId id) const {
  return pages_[index_of(metas_[id.index()].position)];
}

std::uint64_t SessionMemory::missing_bytes(int tokens, std::size_t cuts) const {
  if (options_.budget_bytes == KvBudget::kUnlimited) return 0;
  const bool open = !pages_.empty() && !pages_.back().sealed;
  const int free_slots = open ? options_.page_tokens - pages_.back().filled : 0;
  const int beyond = std::max(0, tokens - free_slots);
  const int pages =
      (beyond + options_.page_tokens - 1) / options_.page_tokens + static_cast<int>(cuts);
  const std::uint64_t wanted =
      tracked_bytes() + static_cast<std::uint64_t>(pages) * options_.forms[0].bytes;
  return wanted > options_.budget_bytes ? wanted - options_.budget_bytes : 0;
}

void SessionMemory::dropped(std::span<const Position> first_positions) {
  auto next = first_positions.begin();
  std::erase_if(pages_, [&](const Page& page) {
    if (next == first_positions.end() || page.first_position != *next) return false;
    ++next;
    evicted_tokens_ += page.filled;
    ++evicted_pages_;
    release(page);
    return true;
  });
  MEMDECAY_CHECK(next == first_positions.end());
}

void SessionMemory::demoted(Position first_position, KvFormat format) {
  Page& page = pages_[index_of(first_position)];
  page.format = format;
  track(page, /*is_new=*/false);
}

}  // namespace memdecay
