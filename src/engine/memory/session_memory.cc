#include "engine/memory/session_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/units.h"
#include "policy/regions/exact_values.h"

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

namespace {

/// Positions from `to` on go. A single run that is left needs no entry: the page is plain.
void cut_runs(std::vector<PositionRun>& runs, Position to) {
  while (!runs.empty() && runs.back().first >= to) runs.pop_back();
  if (!runs.empty()) runs.back().tokens = std::min(runs.back().tokens, to - runs.back().first);
  if (runs.size() == 1) runs.clear();
}

}  // namespace

SessionMemory::SessionMemory(EvictionPolicyHandle policy, const SessionMemoryOptions& options)
    : policy_(std::move(policy)), options_(options), watermarks_(options.watermarks) {}

SessionMemory SessionMemory::fork() const {
  SessionMemory copy(policy_->clone(), options_);
  copy.watermarks_ = watermarks_;
  copy.labels_ = labels_;
  copy.pages_ = pages_;
  copy.metas_ = metas_;
  copy.free_ids_ = free_ids_;
  copy.time_ = time_;
  copy.size_ = size_;
  copy.evicted_tokens_ = evicted_tokens_;
  copy.evicted_pages_ = evicted_pages_;
  copy.recomputed_tokens_ = recomputed_tokens_;
  copy.eviction_seconds_ = eviction_seconds_;
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
    settled_pages_ = 0;
  }
}

std::vector<Position> SessionMemory::cuts(Position begin, Position end) const {
  std::vector<Position> cuts;
  if (!options_.evicts) return cuts;  // nothing is judged, so nothing need be told apart
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

/// The span that the tokens of these positions count as: the strongest of those that hold at least
/// kSmallestRunTokens of them, else the one that holds most.
RegionSpan SessionMemory::region_of(std::span<const PositionRun> runs) const {
  RegionSpan best;
  best.region = Region::kRecent;
  std::int32_t most = 0;
  const auto judge = [&](const RegionSpan& span, std::int32_t tokens) {
    if (tokens <= 0) return;
    const bool enough = tokens >= kSmallestRunTokens;
    const bool best_enough = most >= kSmallestRunTokens;
    const bool stronger = span.region < best.region;
    const bool same = span.region == best.region;
    const bool better = enough && best_enough ? stronger || (same && tokens > most)
                                              : tokens > most || (tokens == most && stronger);
    if (most > 0 && !better) return;
    best = span;
    most = tokens;
  };
  std::int32_t answered = 0;
  for (const PositionRun& part : runs) {
    answered += std::max(0, part.end() - std::max(part.first, labelled()));
    for (std::size_t run = run_at(part.first); run < labels_.regions.size(); ++run) {
      const RegionSpan& span = region_at(run);
      if (span.tokens.begin >= part.end()) break;
      judge(span, std::min(part.end(), span.tokens.end) - std::max(part.first, span.tokens.begin));
    }
  }
  RegionSpan answer;
  answer.region = Region::kRecent;
  judge(answer, answered);
  return best;
}

/// Region and its companions from the runs of tokens that the page holds, the share of exact values
/// from all of them.
void SessionMemory::describe(const Page& page, PageMeta& meta) const {
  const PositionRun whole = {page.first_position, page.filled};
  const auto runs = page.runs.empty() ? std::span(&whole, 1) : std::span(page.runs);
  const RegionSpan best = region_of(runs);
  meta.region = best.region;
  meta.pinned = best.pinned;
  meta.tool_round = best.tool_round;
  meta.tool_core = best.tool_core;
  meta.item = best.item;
  const std::span exact(labels_.exact);
  float exact_tokens = 0;
  float labelled_tokens = 0;
  for (const PositionRun& run : runs) {
    const std::size_t begin = std::min(exact.size(), static_cast<std::size_t>(run.first));
    const std::size_t end = std::min(exact.size(), static_cast<std::size_t>(run.end()));
    const auto tokens = static_cast<float>(end - begin);
    exact_tokens += tokens * exact_share(exact.subspan(begin, end - begin));
    labelled_tokens += tokens;
  }
  meta.exact_share = labelled_tokens > 0 ? exact_tokens / labelled_tokens : 0.0F;
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

void SessionMemory::give_back(TrackedPageId id) {
  if (keys_.has_value()) keys_->forget(id);
  free_ids_.push_back(id);
}

void SessionMemory::release(const Page& page) {
  policy_->release(page.id);
  give_back(page.id);
  settled_pages_ = 0;
}

/// A page whose tokens are no longer part of the history: told without its item first, whose floor
/// would count them as evicted for ever.
void SessionMemory::cut_off(const Page& page) {
  PageMeta& meta = metas_[page.id.index()];
  if (meta.item != kNoItem) {
    meta.item = kNoItem;
    policy_->track(meta);
  }
  release(page);
}

PageMeta SessionMemory::begin_meta(const Page& page) const {
  PageMeta meta;
  meta.id = page.id;
  meta.position = page.first_position;
  meta.born_step = time_.step;
  meta.forms = options_.forms;
  return meta;
}

void SessionMemory::fill_in(const Page& page, PageMeta& meta) const {
  meta.tokens = page.filled;
  meta.sealed = page.sealed;
  meta.form = form_of(page.format);
  meta.bytes = options_.forms[form_index(meta.form)].bytes;
  describe(page, meta);
}

/// Tells the policy about a page that is new, grew, or was sealed.
void SessionMemory::track(Page& page, bool is_new) {
  if (is_new) {
    page.id = take_id();
    page.forms = Forms::kOffered;
  }
  PageMeta& meta = metas_[page.id.index()];
  if (is_new) meta = begin_meta(page);
  fill_in(page, meta);
  policy_->track(meta);
  if (page.sealed) settled_pages_ = 0;
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
  for (std::size_t i = count; i < pages_.size(); ++i) cut_off(pages_[i]);
  pages_.resize(count);
  for (std::size_t i = same; i < count; ++i) {
    if (as_it_was(i)) continue;
    const KvPageRef& ref = view.pages[i];
    Page& page = pages_[i];
    // A page that was refused its forms and cut back holds other numbers when it is filled again.
    const bool refilled = page.forms == Forms::kRefused && ref.filled < page.filled;
    const bool same_place = page.filled > 0 && page.first_position == ref.first_position;
    const bool known = same_place && !refilled;
    if (page.filled > 0 && !known) cut_off(page);
    same_place ? cut_runs(page.runs, size) : page.runs.clear();
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

void SessionMemory::demoted(Position first_position, KvFormat format, float rounding_error) {
  Page& page = pages_[index_of(first_position)];
  page.format = format;
  PageMeta& meta = metas_[page.id.index()];
  const std::size_t form = form_index(form_of(format));
  const float usual = options_.forms[form].rounding_error;
  const float ratio = usual > 0 ? rounding_error / usual : 1.0F;
  meta.forms[form].rounding_error = rounding_error;
  for (std::size_t coarser = form + 1; coarser < kPageFormCount; ++coarser)
    meta.forms[coarser].rounding_error = ratio * options_.forms[coarser].rounding_error;
  track(page, /*is_new=*/false);
}

void SessionMemory::set_forms(Page& page, Forms forms) {
  page.forms = forms;
  PageMeta& meta = metas_[page.id.index()];
  for (std::size_t form = form_index(meta.form) + 1; form < kPageFormCount; ++form)
    meta.forms[form].bytes = forms == Forms::kOffered ? options_.forms[form].bytes : 0;
  policy_->track(meta);
}

void SessionMemory::offer_forms(std::size_t page, bool offered) {
  Page& entry = pages_[page];
  const Forms forms = offered ? Forms::kOffered : Forms::kWithheld;
  if (entry.forms != forms && entry.forms != Forms::kRefused) set_forms(entry, forms);
}

void SessionMemory::refuse_forms(Position first_position) {
  set_forms(pages_[index_of(first_position)], Forms::kRefused);
}

void SessionMemory::packed(std::size_t first, std::size_t count, const PagedKvView& view,
                           const PackedRuns& runs) {
  MEMDECAY_CHECK(view.pages.size() < pages_.size() && first + count <= pages_.size());
  const std::size_t left = count - (pages_.size() - view.pages.size());
  std::vector<TrackedPageId> before;
  for (std::size_t i = first; i < first + count; ++i) before.push_back(pages_[i].id);
  std::vector<Page> pages(left);
  std::vector<PackedPage> after(left);
  std::size_t source = first;
  std::int32_t source_tokens = pages_[first].filled;  // that are not in a new page yet
  for (std::size_t i = 0; i < left; ++i) {
    const KvPageRef& ref = view.pages[first + i];
    const auto own_runs = runs.of(ref);
    pages[i] = {ref.first_position, ref.filled, ref.format,
                /*sealed=*/true,    take_id(),  {own_runs.begin(), own_runs.end()},
                Forms::kOffered};
    PageMeta& meta = after[i].meta = begin_meta(pages[i]);
    std::int64_t born = 0;
    for (std::int32_t free = ref.filled; free > 0;) {
      if (source_tokens == 0) source_tokens = pages_[++source].filled;
      const std::int32_t taken = std::min(free, source_tokens);
      after[i].parts.push_back({pages_[source].id, taken});
      born += taken * metas_[pages_[source].id.index()].born_step;
      free -= taken;
      source_tokens -= taken;
    }
    meta.born_step = born / ref.filled;
    fill_in(pages[i], meta);
    metas_[pages[i].id.index()] = meta;
  }
  MEMDECAY_CHECK(source + 1 == first + count && source_tokens == 0);
  policy_->repack(before, after);
  for (const TrackedPageId id : before) give_back(id);
  const auto at = pages_.begin() + static_cast<std::ptrdiff_t>(first);
  std::move(pages.begin(), pages.end(), at);
  pages_.erase(at + static_cast<std::ptrdiff_t>(left), at + static_cast<std::ptrdiff_t>(count));
  settled_pages_ = 0;
}

std::string SessionMemory::protection() const {
  std::map<Shield, std::uint64_t> bytes;
  for (const Page& page : pages_) {
    const Shield shield = policy_->explain(page.id).shield;
    if (shield != Shield::kNone) bytes[shield] += meta(page).bytes;
  }
  std::string text;
  for (const auto& [shield, held] : bytes)
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", shield_name(shield), format_bytes(held));
  return text;
}

}  // namespace memdecay
