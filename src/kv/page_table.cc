#include "kv/page_table.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "kv/page_packer.h"

namespace memdecay {
namespace {

std::int32_t pages_over(std::int32_t tokens, std::int32_t page_tokens) {
  return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
}

/// Calls visit(begin, end) for the stretches of [begin, end) between the cuts, which may be empty
/// before the first cut only.
template <typename Visit>
void each_stretch(Position begin, Position end, std::span<const Position> cuts,
                  const Visit& visit) {
  for (const Position cut : cuts) visit(std::exchange(begin, cut), cut);
  visit(begin, end);
}

template <typename T>
auto at(std::vector<T>& items, std::size_t index) {
  return items.begin() + static_cast<std::ptrdiff_t>(index);
}

}  // namespace

PageTable::PageTable(const GroupPools& pools, std::int32_t window, std::int32_t cut_back)
    : pools_(&pools), window_(window), cut_back_(cut_back) {
  MEMDECAY_CHECK(window >= 0 && cut_back >= 0);
}

PageTable::~PageTable() {
  const GroupPools::Batch batch(*pools_);
  pages_.items().clear();
}

std::size_t PageTable::index_at(Position position) const {
  const auto& refs = refs_.items();
  const auto after =
      std::upper_bound(refs.begin(), refs.end(), position,
                       [](Position p, const KvPageRef& page) { return p < page.first_position; });
  MEMDECAY_CHECK(after != refs.begin());
  return static_cast<std::size_t>(after - refs.begin()) - 1;
}

std::size_t PageTable::index_of(Position first_position) const {
  const std::size_t i = index_at(first_position);
  MEMDECAY_CHECK(refs_.items()[i].first_position == first_position);
  return i;
}

std::optional<std::size_t> PageTable::find(Position position) const {
  const auto& refs = refs_.items();
  if (refs.empty() || position < refs.front().first_position) return std::nullopt;
  const std::size_t i = index_at(position);
  const bool held =
      runs_.slots_before(refs[i], position + 1) > runs_.slots_before(refs[i], position);
  return held ? std::optional(i) : std::nullopt;
}

bool PageTable::may_be_written(const KvPageRef& page) const {
  return page.format == own_form() && page.rope_shift == 0 && runs_.of(page).empty();
}

void PageTable::check_writable(Position begin, Position end) const {
  const auto& refs = refs_.items();
  while (begin < end) {
    const auto i = find(begin);
    MEMDECAY_CHECK(i.has_value());
    MEMDECAY_CHECK(pages()[*i].exclusive() && may_be_written(refs[*i]));
    begin = refs[*i].first_position + refs[*i].filled;
  }
}

PageTable::Need PageTable::plan_append(Position size, std::int32_t tokens,
                                       std::span<const Position> cuts) const {
  Need need;
  if (tokens == 0) return need;
  if (is_dense()) cuts = {};
  std::int32_t room = open_ ? page_tokens() - refs_.items().back().filled : 0;
  const bool writes_last = open_ && (cuts.empty() || cuts.front() != size);
  each_stretch(size, size + tokens, cuts, [&](Position begin, Position end) {
    need.pages += pages_over(std::max(0, end - begin - std::exchange(room, 0)), page_tokens());
  });
  const std::size_t entries = pages().size() + static_cast<std::size_t>(need.pages);
  need.pool = &pools_->own();
  need.copies_last = writes_last && !pages().back().exclusive();
  need.pages += need.copies_last ? 1 : 0;
  need.capacity = pages_.growth_for(entries);
  need.bytes = static_cast<std::uint64_t>(need.pages) * need.pool->stride_bytes() +
               need.capacity * kEntryBytes;
  return need;
}

void PageTable::hold(std::size_t capacity, BudgetReservation& paid) {
  pages_.grow(capacity, paid);
  refs_.grow(capacity, paid);
}

void PageTable::push(PageHandle page, Position first_position, std::int32_t filled) {
  const KvFormat form = page.pool().layout().format;
  refs_.items().push_back({page.base(), first_position, filled, form, 0, closed_});
  pages_.items().push_back(std::move(page));
  open_ = filled < page_tokens() && form == own_form();
}

void PageTable::append(Position size, std::int32_t tokens, std::span<const Position> cuts,
                       const Need& need, BudgetReservation& paid) {
  if (tokens == 0) return;
  if (is_dense()) cuts = {};
  hold(need.capacity, paid);
  if (need.copies_last) {
    PageHandle& last = pages_.items().back();
    last = need.pool->copy(last, paid);
    refs_.items().back().base = last.base();
  }
  const Position end = size + tokens;
  each_stretch(size, end, cuts, [&](Position begin, Position border) {
    fill(begin, border, paid);
    if (border < end) open_ = false;  // a cut
  });
  MEMDECAY_CHECK(paid.bytes() == 0);
}

/// Appends [begin, end), first into the open page, then into new ones.
void PageTable::fill(Position begin, Position end, BudgetReservation& paid) {
  while (begin < end) {
    if (!open_) push(pools_->own().allocate(paid), begin, 0);
    KvPageRef& last = refs_.items().back();
    const std::int32_t slots = std::min(page_tokens() - last.filled, end - begin);
    last.filled += slots;
    begin += slots;
    open_ = last.filled < page_tokens();
  }
}

void PageTable::drop(std::span<const Position> first_positions) {
  if (is_dense() || first_positions.empty()) return;
  auto& pages = pages_.items();
  auto& refs = refs_.items();
  std::size_t kept = index_of(first_positions.front());
  MEMDECAY_CHECK(!open_ || first_positions.back() < refs.back().first_position);
  const GroupPools::Batch batch(*pools_);
  std::size_t dropped = 0;
  for (std::size_t i = kept; i < refs.size(); ++i) {
    if (dropped < first_positions.size() && refs[i].first_position == first_positions[dropped]) {
      ++dropped;
      runs_.forget(refs[i]);
      pages[i].reset();
    } else {
      pages[kept] = std::move(pages[i]);
      refs[kept++] = refs[i];
    }
  }
  MEMDECAY_CHECK(dropped == first_positions.size());
  keep_first(kept);
  runs_.sweep();
}

PageTable::Need PageTable::plan_replace(Position first_position, KvFormat form) const {
  Need need;
  if (is_dense()) return need;
  need.pool = pools_->find(form);
  MEMDECAY_CHECK(need.pool != nullptr && refs_.items()[index_of(first_position)].format != form);
  need.pages = 1;
  need.bytes = need.pool->stride_bytes();
  return need;
}

void PageTable::replace(Position first_position, const ConvertPage& convert, const Need& need,
                        BudgetReservation& paid) {
  if (need.pages == 0) return;
  const std::size_t i = index_of(first_position);
  PageHandle& old = pages_.items()[i];
  KvPageRef& ref = refs_.items()[i];
  PageHandle page = need.pool->allocate(paid);
  convert(old.pool().layout(), ref.base, need.pool->layout(), page.base(), ref.filled);
  ref.base = page.base();
  ref.format = need.pool->layout().format;
  old = std::move(page);
  if (i + 1 == refs_.items().size()) open_ = false;
}

PageTable::Need PageTable::plan_pack(std::span<const Position> first_positions) const {
  Need need;
  if (is_dense()) return need;
  MEMDECAY_CHECK(first_positions.size() >= 2);
  const std::size_t first = index_of(first_positions.front());
  const auto sources = std::span(refs_.items()).subspan(first);
  MEMDECAY_CHECK(sources.size() - (open_ ? 1 : 0) >= first_positions.size());
  std::int32_t slots = 0;
  for (std::size_t i = 0; i < first_positions.size(); ++i) {
    MEMDECAY_CHECK(sources[i].first_position == first_positions[i]);
    MEMDECAY_CHECK(sources[i].format == sources[0].format && !is_quantized(sources[i].format));
    MEMDECAY_CHECK(sources[i].rope_shift == sources[0].rope_shift &&
                   sources[i].closed_before == sources[0].closed_before);
    slots += sources[i].filled;
    need.runs += std::max(std::size_t{1}, runs_.of(sources[i]).size());
  }
  need.pool = pools_->find(sources[0].format);
  need.pages = pages_over(slots, page_tokens());
  const auto pages = static_cast<std::size_t>(need.pages);
  MEMDECAY_CHECK(pages < first_positions.size());
  need.runs += pages;  // each new page may begin within a run
  need.run_capacity = runs_.memory().growth_for(runs_.count() + need.runs);
  need.bytes = pages * need.pool->stride_bytes() + need.run_capacity * sizeof(PositionRun) +
               PagePacker::bytes_for(pages, need.runs);
  return need;
}

void PageTable::pack(std::span<const Position> first_positions, const Need& need,
                     BudgetReservation& paid) {
  if (need.pages == 0) return;
  runs_.memory().grow(need.run_capacity, paid);
  const std::size_t first = index_of(first_positions.front());
  const std::size_t end = first + first_positions.size();
  auto& pages = pages_.items();
  auto& refs = refs_.items();
  PagePacker packer(*need.pool, static_cast<std::size_t>(need.pages), need.runs, paid);
  for (std::size_t i = first; i < end; ++i) {
    std::int32_t slot = 0;
    const auto runs = runs_.of(refs[i]);
    if (runs.empty()) packer.add(refs[i], 0, {refs[i].first_position, refs[i].filled});
    for (const PositionRun& run : runs)
      packer.add(refs[i], std::exchange(slot, slot + run.tokens), run);
  }
  packer.finish();
  for (std::size_t i = first; i < end; ++i) runs_.forget(refs[i]);
  runs_.sweep();
  runs_.insert(packer.runs());
  const GroupPools::Batch batch(*pools_);
  const std::size_t rest = first + packer.refs().size();
  std::move(packer.pages().begin(), packer.pages().end(), at(pages, first));
  const KvPageRef moved = refs[first];
  std::copy(packer.refs().begin(), packer.refs().end(), at(refs, first));
  for (KvPageRef& ref : std::span(refs).subspan(first, rest - first)) {
    ref.rope_shift = moved.rope_shift;
    ref.closed_before = moved.closed_before;
  }
  pages.erase(at(pages, rest), at(pages, end));
  refs.erase(at(refs, rest), at(refs, end));
}

Position PageTable::close_gaps(Position size, std::int32_t smallest_gap) {
  MEMDECAY_CHECK(smallest_gap >= 1);
  if (is_dense()) return 0;
  Position won = 0;
  Position end = 0;  // of the entry before, where it stood
  const auto close_before = [&](Position place) {
    if (place - end >= smallest_gap) won += place - end;
  };
  for (KvPageRef& ref : refs_.items()) {
    close_before(ref.first_position - ref.closed_before);
    end = runs_.end_of(ref) - ref.closed_before;
    ref.closed_before += won;
    ref.rope_shift -= won;
  }
  close_before(size - closed_);
  closed_ += won;
  if (won > 0) open_ = false;
  return won;
}

PageTable::Need PageTable::plan_adopt(std::size_t count) const {
  MEMDECAY_CHECK(!open_);
  Need need;
  need.capacity = pages_.growth_for(pages().size() + count);
  need.bytes = need.capacity * kEntryBytes;
  return need;
}

void PageTable::adopt(PageHandle page, std::int32_t filled) {
  MEMDECAY_CHECK(filled >= 1 && filled <= page_tokens());
  MEMDECAY_CHECK(pages().size() < pages().capacity());
  const std::int32_t number = first_page_number_ + static_cast<std::int32_t>(pages().size());
  if (!page.has_page()) {
    MEMDECAY_CHECK(is_dense() && filled == page_tokens());
    const GroupPools::Batch batch(*pools_);
    keep_first(0);
    first_page_number_ = number + 1;
    return;
  }
  MEMDECAY_CHECK(pools_->find(page.pool().layout().format) == &page.pool());
  Position end = refs_.items().empty() ? 0 : runs_.end_of(refs_.items().back());
  if (is_dense()) end = number * page_tokens();
  push(std::move(page), end, filled);
}

void PageTable::trim(Position next) {
  if (!is_dense()) return;
  // The query at `next` sees positions > next - window.
  const std::int64_t dead = std::int64_t{next} - window_ - cut_back_ + 1;  // [0, dead) is unseen
  if (dead <= 0) return;
  const auto keep_from = static_cast<std::int32_t>(dead / page_tokens()) - first_page_number_;
  const std::int32_t gone = std::min(keep_from, static_cast<std::int32_t>(pages().size()));
  if (gone <= 0) return;
  auto& pages = pages_.items();
  auto& refs = refs_.items();
  const GroupPools::Batch batch(*pools_);
  pages.erase(pages.begin(), pages.begin() + gone);
  refs.erase(refs.begin(), refs.begin() + gone);
  first_page_number_ += gone;
}

Position PageTable::earliest_cut() const {
  if (!is_dense() || first_page_number_ == 0) return 1;
  return first_page_number_ * page_tokens() + window_ - 1;
}

/// REQUIRES: runs of the others are gone or go next.
void PageTable::keep_first(std::size_t count) {
  auto& pages = pages_.items();
  pages.erase(at(pages, count), pages.end());
  refs_.items().resize(count);
}

void PageTable::truncate(Position to) {
  MEMDECAY_CHECK(to == 0 || to >= earliest_cut());
  auto& refs = refs_.items();
  const auto end =
      std::lower_bound(refs.begin(), refs.end(), to,
                       [](const KvPageRef& page, Position p) { return page.first_position < p; });
  {
    const GroupPools::Batch batch(*pools_);
    keep_first(static_cast<std::size_t>(end - refs.begin()));
  }
  if (to == 0) first_page_number_ = 0;
  open_ = false;
  closed_ = refs.empty() ? 0 : refs.back().closed_before;
  std::int32_t left = 0;
  if (!refs.empty()) left = runs_.slots_before(refs.back(), to);
  runs_.cut(to);
  if (refs.empty() || left == refs.back().filled) return;
  refs.back().filled = left;
  if (runs_.of(refs.back()).size() == 1) runs_.cut(refs.back().first_position);  // no gap is left
  open_ = may_be_written(refs.back()) && runs_.end_of(refs.back()) == to;
}

std::uint64_t PageTable::fork_bytes() const {
  return pages().size() * kEntryBytes + runs_.count() * sizeof(PositionRun);
}

PageTable PageTable::fork(BudgetReservation& paid) const {
  PageTable copy(*pools_, window_, cut_back_);
  copy.hold(pages().size(), paid);
  copy.runs_.memory().grow(runs_.count(), paid);
  copy.first_page_number_ = first_page_number_;
  copy.open_ = open_;
  copy.closed_ = closed_;
  for (const PageHandle& page : pages()) copy.pages_.items().push_back(page.share());
  copy.refs_.items() = refs_.items();
  copy.runs_.memory().items() = runs_.memory().items();
  return copy;
}

std::vector<PositionRun> PageTable::held() const {
  std::vector<PositionRun> held;
  const auto add = [&](const PositionRun& run) {
    if (run.tokens == 0) return;
    if (!held.empty() && held.back().end() == run.first) {
      held.back().tokens += run.tokens;
    } else {
      held.push_back(run);
    }
  };
  for (const KvPageRef& page : view().pages) {
    const auto runs = runs_.of(page);
    if (runs.empty()) add({page.first_position, page.filled});
    for (const PositionRun& run : runs) add(run);
  }
  return held;
}

}  // namespace memdecay
