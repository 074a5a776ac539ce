#include "kv/page_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/units.h"

namespace memdecay {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

PageHandle::PageHandle(PageHandle&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}

PageHandle& PageHandle::operator=(PageHandle&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

std::byte* PageHandle::base() const {
  MEMDECAY_CHECK(has_page());
  return pool_->base(id_);
}

std::int32_t PageHandle::references() const {
  MEMDECAY_CHECK(has_page());
  return pool_->references(id_);
}

bool PageHandle::remembered() const {
  MEMDECAY_CHECK(has_page());
  return pool_->remembered(id_);
}

PageHandle PageHandle::share() const {
  MEMDECAY_CHECK(has_page());
  pool_->add_reference(id_);
  return PageHandle(pool_, id_);
}

void PageHandle::reset() {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->release(id_);
}

std::uint64_t PagePool::table_bytes_for(std::int32_t max_pages) {
  const std::uint64_t bytes = IndexSet::words_for(max_pages) * sizeof(std::uint64_t) +
                              static_cast<std::uint64_t>(max_pages) * sizeof(std::int32_t);
  return round_up(bytes, system_page_bytes());
}

std::uint64_t PagePool::stride_bytes_for(const KvPageLayout& layout) {
  return round_up(layout.page_bytes(), system_page_bytes());
}

Result<std::unique_ptr<PagePool>> PagePool::create(KvBudget& budget, const KvPageLayout& layout,
                                                   std::int32_t max_pages, HugePages huge) {
  MEMDECAY_CHECK(max_pages >= 1 && layout.page_bytes() > 0);
  auto charged = budget.try_reserve(table_bytes_for(max_pages));
  if (!charged)
    return make_status(StatusCode::kResourceExhausted,
                       "the KV budget of {} has no room for the tables of {} pages",
                       format_bytes(budget.limit_bytes()), max_pages);
  MEMDECAY_ASSIGN_OR_RETURN(
      auto tables, AnonymousMemory::allocate(table_bytes_for(max_pages), HugePages::kNever));
  MEMDECAY_ASSIGN_OR_RETURN(
      auto pages, AnonymousMemory::reserve(
                      stride_bytes_for(layout) * static_cast<std::uint64_t>(max_pages), huge));
  auto pool = std::unique_ptr<PagePool>(
      new PagePool(layout, max_pages, std::move(pages), std::move(tables), *std::move(charged)));
  pool->budget_ = &budget;
  return pool;
}

PagePool::PagePool(const KvPageLayout& layout, std::int32_t max_pages, AnonymousMemory pages,
                   AnonymousMemory tables, BudgetReservation charged)
    : layout_(layout),
      stride_bytes_(stride_bytes_for(layout)),
      charged_(std::move(charged)),
      pages_(std::move(pages)),
      tables_(std::move(tables)) {
  // Fresh anonymous memory is zero: an empty tree and no references.
  auto* const words = reinterpret_cast<std::uint64_t*>(tables_.data());
  taken_ = IndexSet(words, max_pages);
  references_ = reinterpret_cast<std::int32_t*>(words + IndexSet::words_for(max_pages));
}

PagePool::~PagePool() {
  MEMDECAY_CHECK(taken_.taken() == 0);
}

PagePoolCounters PagePool::counters() const {
  PagePoolCounters counters;
  counters.total_pages = max_pages();
  counters.used_pages = taken_.taken();
  counters.free_pages = free_pages();
  counters.shared_pages = shared_;
  counters.peak_used_pages = peak_used_;
  counters.page_bytes = static_cast<std::uint64_t>(taken_.taken()) * stride_bytes_;
  counters.table_bytes = tables_.size();
  counters.allocations = allocations_;
  counters.releases = releases_;
  counters.copies = copies_;
  return counters;
}

std::int32_t PagePool::references(PageId page) const {
  MEMDECAY_CHECK(page.value() >= 0 && page.value() < max_pages());
  return references_at(page.index());
}

void PagePool::set_remembered(const PageHandle& page, bool remembered) {
  MEMDECAY_CHECK(page.pool_ == this && this->remembered(page.id_) != remembered);
  references_[page.id_.index()] ^= kRemembered;
  if (page.exclusive()) idle_ += remembered ? 1 : -1;
}

std::optional<PageHandle> PagePool::try_allocate() {
  auto paid = budget_->try_reserve(stride_bytes_);
  if (!paid || !try_prepare(1)) return std::nullopt;
  return allocate(*paid);
}

std::optional<PageHandle> PagePool::try_copy(const PageHandle& source) {
  auto paid = budget_->try_reserve(stride_bytes_);
  if (!paid || !try_prepare(1)) return std::nullopt;
  return copy(source, *paid);
}

Room PagePool::try_prepare(std::int32_t pages) {
  if (pages > free_pages())
    return {Room::Refusal::kPool, static_cast<std::uint64_t>(pages - free_pages()) * stride_bytes_};
  // Free pages below accessible_ come first, being the lowest.
  const std::int32_t fresh = pages - (accessible_ - taken_.taken());
  if (fresh <= 0) return {};
  const std::uint64_t begin = static_cast<std::uint64_t>(accessible_) * stride_bytes_;
  const std::uint64_t wanted = static_cast<std::uint64_t>(fresh) * stride_bytes_;
  // Whole huge pages: the kernel backs only a range that may be touched throughout with one.
  const std::uint64_t end = std::min<std::uint64_t>(
      round_up(begin + wanted, AnonymousMemory::kHugePageBytes), pages_.size());
  if (!pages_.make_accessible(begin, end - begin).ok()) return {Room::Refusal::kSystem, wanted};
  accessible_ = static_cast<std::int32_t>(end / stride_bytes_);
  accessible_bytes_ = end;
  return {};
}

PageHandle PagePool::allocate(BudgetReservation& paid) {
  MEMDECAY_CHECK(open_batches_ == 0);
  charged_.merge(paid.split(stride_bytes_));
  const PageId page(taken_.take_lowest());
  MEMDECAY_CHECK(page.value() < accessible_ && references_[page.index()] == 0);
  references_[page.index()] = 1;
  ever_used_ = std::max(ever_used_, page.value() + 1);
  peak_used_ = std::max(peak_used_, taken_.taken());
  ++allocations_;
  return PageHandle(this, page);
}

PageHandle PagePool::copy(const PageHandle& source, BudgetReservation& paid) {
  MEMDECAY_CHECK(source.pool_ == this);
  PageHandle target = allocate(paid);
  std::memcpy(target.base(), source.base(), layout_.page_bytes());
  ++copies_;
  return target;
}

void PagePool::add_reference(PageId page) {
  ++references_[page.index()];
  if (references_at(page.index()) != 2) return;
  ++shared_;
  if (remembered(page)) --idle_;
}

void PagePool::release(PageId page) {
  MEMDECAY_CHECK(references_at(page.index()) > 0);
  const std::int32_t left = --references_[page.index()] & ~kRemembered;
  if (left == 1) {
    --shared_;
    if (remembered(page)) ++idle_;
  }
  if (left > 0) return;
  MEMDECAY_CHECK(!remembered(page));
  taken_.give_back(page.value());
  ++releases_;
  if (page.value() == run_end_ && run_begin_ < run_end_) {
    ++run_end_;
  } else {
    give_back_run();
    run_begin_ = page.value();
    run_end_ = run_begin_ + 1;
  }
  if (open_batches_ == 0) give_back_run();
}

PagePool::Batch::~Batch() {
  if (--pool_.open_batches_ == 0) pool_.give_back_run();
}

bool PagePool::all_free(std::uint64_t begin_byte, std::uint64_t end_byte) const {
  const auto end = std::min<std::uint64_t>((end_byte + stride_bytes_ - 1) / stride_bytes_,
                                           static_cast<std::uint64_t>(max_pages()));
  for (std::uint64_t p = begin_byte / stride_bytes_; p < end; ++p)
    if (taken_.contains(static_cast<std::int32_t>(p))) return false;
  return true;
}

void PagePool::give_back_run() {
  if (run_begin_ == run_end_) return;
  std::uint64_t begin = static_cast<std::uint64_t>(run_begin_) * stride_bytes_;
  std::uint64_t end = static_cast<std::uint64_t>(run_end_) * stride_bytes_;
  const std::uint64_t paid = end - begin;
  // A huge page that is given back in pieces stays in pieces; given back whole it can come again.
  // What is free already costs nothing to give back twice.
  const std::uint64_t whole_begin =
      begin / AnonymousMemory::kHugePageBytes * AnonymousMemory::kHugePageBytes;
  const std::uint64_t whole_end =
      std::min(round_up(end, AnonymousMemory::kHugePageBytes), accessible_bytes_);
  if (all_free(whole_begin, begin)) begin = whole_begin;
  if (all_free(end, whole_end)) end = whole_end;
  pages_.decommit(begin, end - begin);
  charged_.split(paid).release();
  run_begin_ = run_end_ = 0;
}

Status PagePool::check(std::span<const std::int32_t> expected_references) const {
  std::int32_t shared = 0;
  std::int32_t idle = 0;
  for (std::int32_t p = 0; p < ever_used_; ++p) {
    const auto at = static_cast<std::size_t>(p);
    const std::int32_t expected = at < expected_references.size() ? expected_references[at] : 0;
    if (references_at(at) != expected)
      return make_status(StatusCode::kCorrupt,
                         "page {} counts {} references but {} entries name it", p,
                         references_at(at), expected);
    if (taken_.contains(p) != (expected > 0))
      return make_status(StatusCode::kCorrupt, "page {} has {} references and is marked {}", p,
                         expected, taken_.contains(p) ? "used" : "free");
    shared += expected > 1 ? 1 : 0;
    idle += expected == 1 && remembered(PageId(p)) ? 1 : 0;
  }
  if (!taken_.consistent(ever_used_))
    return Status(StatusCode::kCorrupt, "the tree of free pages disagrees with itself");
  if (shared != shared_)
    return make_status(StatusCode::kCorrupt, "{} pages are shared but {} are counted", shared,
                       shared_);
  if (idle != idle_)
    return make_status(StatusCode::kCorrupt, "{} remembered pages are idle but {} are counted",
                       idle, idle_);
  const std::uint64_t bytes =
      tables_.size() + static_cast<std::uint64_t>(taken_.taken()) * stride_bytes_;
  if (charged_.bytes() != bytes)
    return make_status(StatusCode::kCorrupt, "the pool charges {} bytes but holds {}",
                       charged_.bytes(), bytes);
  return {};
}

}  // namespace memdecay
