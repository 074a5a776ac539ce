#include "kv/page_table.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace memdecay {
namespace {

std::int32_t pages_over(std::int32_t tokens, std::int32_t page_tokens) {
  return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
}

}  // namespace

PageTable::PageTable(PagePool& pool, std::int32_t window, std::int32_t cut_back)
    : pool_(&pool), window_(window), cut_back_(cut_back) {
  MEMDECAY_CHECK(window >= 0 && cut_back >= 0);
}

PageTable::~PageTable() {
  const PagePool::Batch batch(*pool_);
  pages_.clear();
}

PageTable::Need PageTable::plan_append(Position size, std::int32_t tokens) const {
  Need need;
  if (tokens == 0) return need;
  const std::int32_t end = pages_over(size + tokens, page_tokens());
  need.pages = end - end_page_number();
  need.copies_last = size % page_tokens() != 0 && !pages_.back().exclusive();
  const std::size_t entries = pages_.size() + static_cast<std::size_t>(need.pages);
  need.pages += need.copies_last ? 1 : 0;
  need.bytes = static_cast<std::uint64_t>(need.pages) * pool_->stride_bytes();
  if (entries > pages_.capacity()) {
    // Doubling keeps appends O(1); old and new arrays exist together for a moment.
    need.capacity = std::max({entries, 2 * pages_.capacity(), std::size_t{8}});
    need.bytes += need.capacity * kEntryBytes;
  }
  return need;
}

void PageTable::hold(std::size_t capacity, BudgetReservation& paid) {
  BudgetReservation grown = paid.split(capacity * kEntryBytes);
  pages_.reserve(capacity);
  refs_.reserve(capacity);
  MEMDECAY_CHECK(pages_.capacity() == capacity && refs_.capacity() == capacity);
  memory_ = std::move(grown);
}

void PageTable::push(PageHandle page) {
  const std::int32_t number = end_page_number();
  refs_.push_back({page.base(), number * page_tokens(), 0, pool_->layout().format});
  pages_.push_back(std::move(page));
}

void PageTable::append(Position size, std::int32_t tokens, const Need& need,
                       BudgetReservation& paid) {
  if (tokens == 0) return;
  if (need.capacity > 0) hold(need.capacity, paid);
  if (need.copies_last) {
    pages_.back() = pool_->copy(pages_.back(), paid);
    refs_.back().base = pages_.back().base();
  }
  const Position end = size + tokens;
  const std::size_t first_written =
      pages_.size() - (size % page_tokens() != 0 ? std::size_t{1} : std::size_t{0});
  while (end_page_number() < pages_over(end, page_tokens())) push(pool_->allocate(paid));
  for (std::size_t i = first_written; i < refs_.size(); ++i)
    refs_[i].filled = std::min(page_tokens(), end - refs_[i].first_position);
}

void PageTable::trim(Position next) {
  if (window_ == 0) return;
  // The query at `next` sees positions > next - window.
  const std::int64_t dead = std::int64_t{next} - window_ - cut_back_ + 1;  // [0, dead) is unseen
  if (dead <= 0) return;
  const auto keep_from = static_cast<std::int32_t>(dead / page_tokens());
  const std::int32_t drop = std::min(keep_from, end_page_number()) - first_page_number_;
  if (drop <= 0) return;
  const PagePool::Batch batch(*pool_);
  pages_.erase(pages_.begin(), pages_.begin() + drop);
  refs_.erase(refs_.begin(), refs_.begin() + drop);
  first_page_number_ += drop;
}

Position PageTable::earliest_cut() const {
  if (window_ == 0 || first_page_number_ == 0) return 1;
  return first_page_number_ * page_tokens() + window_ - 1;
}

void PageTable::truncate(Position to) {
  MEMDECAY_CHECK(to == 0 || to >= earliest_cut());
  const std::int32_t end = pages_over(to, page_tokens());
  if (end < end_page_number()) {
    const PagePool::Batch batch(*pool_);
    const auto keep = static_cast<std::size_t>(std::max(0, end - first_page_number_));
    pages_.erase(pages_.begin() + static_cast<std::ptrdiff_t>(keep), pages_.end());
    refs_.resize(keep);
  }
  if (to == 0) first_page_number_ = 0;
  if (!refs_.empty()) refs_.back().filled = to - refs_.back().first_position;
}

std::uint64_t PageTable::fork_bytes() const {
  return pages_.size() * kEntryBytes;
}

PageTable PageTable::fork(BudgetReservation& paid) const {
  PageTable copy(*pool_, window_, cut_back_);
  copy.hold(pages_.size(), paid);
  copy.first_page_number_ = first_page_number_;
  for (const PageHandle& page : pages_) copy.pages_.push_back(page.share());
  copy.refs_ = refs_;
  return copy;
}

Status PageTable::check(Position size) const {
  if (pages_.size() != refs_.size())
    return make_status(StatusCode::kCorrupt, "{} pages stand against {} view entries",
                       pages_.size(), refs_.size());
  if (end_page_number() != pages_over(size, page_tokens()))
    return make_status(StatusCode::kCorrupt, "{} tokens end in page {}, but the table ends at {}",
                       size, pages_over(size, page_tokens()), end_page_number());
  const Position oldest = first_page_number_ * page_tokens();
  if (first_page_number_ > 0 && (window_ == 0 || oldest > size - window_ + 1))
    return make_status(StatusCode::kCorrupt,
                       "position {} is the oldest kept, but the window of {} at {} reaches further",
                       oldest, window_, size);
  for (std::size_t i = 0; i < refs_.size(); ++i) {
    const KvPageRef& ref = refs_[i];
    const Position first = oldest + static_cast<std::int32_t>(i) * page_tokens();
    const std::int32_t filled = std::min(page_tokens(), size - first);
    if (ref.base != pages_[i].base() || ref.first_position != first || ref.filled != filled)
      return make_status(StatusCode::kCorrupt,
                         "entry {} shows position {} with {} slots filled, not {} with {}", i,
                         ref.first_position, ref.filled, first, filled);
  }
  const std::uint64_t arrays =
      pages_.capacity() * sizeof(PageHandle) + refs_.capacity() * sizeof(KvPageRef);
  if (arrays != memory_.bytes())
    return make_status(StatusCode::kCorrupt, "the table's arrays hold {} bytes but charge {}",
                       arrays, memory_.bytes());
  return {};
}

}  // namespace memdecay
