// PagePool: the physical pages of one layer group: allocation, reference counts, memory.
//
// Pages are numbers (PageId) into one AnonymousMemory range that is reserved for max_pages() pages;
// page p lives at p * stride_bytes(), a stride being page_bytes() rounded up to system pages. A
// page is committed, and charged to the budget, from its allocation to the death of its last
// PageHandle; then its memory goes back to the system at once, so nothing is cached here and a page
// reads as zero when it is handed out. A Batch gives neighbours back together, and the whole range
// of a huge page where all of it is free, so that it can become a huge page again. The lowest free
// page is handed out first. The reference counts and the free tree are charged for all max_pages()
// when the pool is made (about 4.2 bytes a page).
//
// Invariants (check() tests them):
//     used + free = max_pages,    references(p) = living handles of p, > 0 exactly for used pages,
//     charged bytes = table_bytes() + used * stride_bytes(),    shared = pages with > 1 reference,
//     idle = remembered pages with 1 reference.
//
// It is not a cache and knows no sequences. Writers must hold the page alone (exclusive()). Whoever
// keeps pages that nobody need have (PrefixTree) marks them as remembered: one of their references
// is then that keeper's, and idle_pages() says how many are held by nobody else.
// Threads: one owner (the engine thread); kernels read and write page bytes through views.
// Cost: allocation and release O(log64 max_pages) plus one system call; share O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/id.h"
#include "core/paged_kv.h"
#include "kv/index_set.h"
#include "kv/kv_budget.h"
#include "sys/memory.h"

namespace memdecay {

class PagePool;

/// One reference to a page, the only kind of owner. Move-only; the last one frees the page.
/// REQUIRES: the pool outlives it.
class [[nodiscard]] PageHandle {
 public:
  PageHandle() = default;  ///< names no page
  PageHandle(PageHandle&& other) noexcept;
  PageHandle& operator=(PageHandle&& other) noexcept;
  ~PageHandle() { reset(); }

  bool has_page() const { return pool_ != nullptr; }
  PageId id() const { return id_; }
  /// REQUIRES: has_page().
  const PagePool& pool() const { return *pool_; }
  /// Start of the page's bytes. Writing needs exclusive().
  std::byte* base() const;
  /// Whether this is the page's only reference.
  bool exclusive() const { return references() == 1; }
  std::int32_t references() const;
  /// Whether one of the references is that of a keeper who can do without the page.
  bool remembered() const;
  /// Another reference to the same page.
  PageHandle share() const;
  void reset();

 private:
  friend class PagePool;
  PageHandle(PagePool* pool, PageId id) : pool_(pool), id_(id) {}
  PagePool* pool_ = nullptr;
  PageId id_;
};

struct PagePoolCounters {
  std::int32_t total_pages = 0;   ///< the most pages that can exist
  std::int32_t used_pages = 0;    ///< pages with at least one reference
  std::int32_t free_pages = 0;    ///< total - used
  std::int32_t shared_pages = 0;  ///< pages with more than one reference
  std::int32_t peak_used_pages = 0;
  std::uint64_t page_bytes = 0;   ///< of the used pages
  std::uint64_t table_bytes = 0;  ///< reference counts and free tree, constant
  std::uint64_t allocations = 0;  ///< pages handed out since the start, copies included
  std::uint64_t releases = 0;     ///< pages freed since the start
  std::uint64_t copies = 0;       ///< pages copied because they were shared
};

class PagePool {
 public:
  /// REQUIRES: a valid layout, max_pages >= 1, a budget that outlives the pool. Fails with
  /// kResourceExhausted where the budget cannot hold the tables or the system has no such range.
  static Result<std::unique_ptr<PagePool>> create(KvBudget& budget, const KvPageLayout& layout,
                                                  std::int32_t max_pages,
                                                  HugePages huge = HugePages::kAsk);
  /// Bytes that a pool of `max_pages` charges for its tables.
  static std::uint64_t table_bytes_for(std::int32_t max_pages);
  /// Bytes that a page of `layout` takes in a pool and in the budget.
  static std::uint64_t stride_bytes_for(const KvPageLayout& layout);

  ~PagePool();  ///< REQUIRES: no handle is left
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  const KvPageLayout& layout() const { return layout_; }
  std::uint64_t stride_bytes() const { return stride_bytes_; }
  std::int32_t max_pages() const { return taken_.capacity(); }
  std::int32_t free_pages() const { return max_pages() - taken_.taken(); }
  PagePoolCounters counters() const;

  /// A zeroed page, held once; empty when the budget, the pool or the system has no room.
  std::optional<PageHandle> try_allocate();
  /// A private copy of `source`, under the same conditions.
  std::optional<PageHandle> try_copy(const PageHandle& source);

  /// For callers that reserved for several pages at once: makes the next `pages` calls of
  /// allocate() succeed, or says who refused. Changes nothing that can be seen.
  Room try_prepare(std::int32_t pages);
  /// A zeroed page paid from `paid`. REQUIRES: try_prepare() covered it, paid.bytes() >= stride.
  PageHandle allocate(BudgetReservation& paid);
  /// A private copy of `source`, paid from `paid`; same requirements.
  PageHandle copy(const PageHandle& source, BudgetReservation& paid);

  /// While one lives, pages that die are collected into runs and given back run by run, at the
  /// latest when it dies. REQUIRES: nothing is allocated meanwhile.
  class Batch {
   public:
    explicit Batch(PagePool& pool) : pool_(pool) { ++pool_.open_batches_; }
    ~Batch();
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;

   private:
    PagePool& pool_;
  };

  std::byte* base(PageId page) const { return pages_.data() + page.index() * stride_bytes_; }
  std::int32_t references(PageId page) const;

  /// Marks a page that is not marked, or takes the mark away. REQUIRES: a page of this pool.
  void set_remembered(const PageHandle& page, bool remembered);
  bool remembered(PageId page) const { return (references_[page.index()] & kRemembered) != 0; }
  /// Marked pages whose only reference is the keeper's. Cost: O(1).
  std::int32_t idle_pages() const { return idle_; }

  /// Tests the invariants above; expected_references[p] is what the caller counted for page p, and
  /// pages past the end of the span have none. kCorrupt names the first broken one. Cost: O(pages
  /// ever used).
  Status check(std::span<const std::int32_t> expected_references) const;
  /// One more than the highest page that was ever used.
  std::int32_t ever_used_pages() const { return ever_used_; }

 private:
  friend class PageHandle;
  PagePool(const KvPageLayout& layout, std::int32_t max_pages, AnonymousMemory pages,
           AnonymousMemory tables, BudgetReservation charged);
  void release(PageId page);
  void give_back_run();
  bool all_free(std::uint64_t begin_byte, std::uint64_t end_byte) const;
  static constexpr std::int32_t kRemembered = 1 << 30;
  std::int32_t references_at(std::size_t page) const { return references_[page] & ~kRemembered; }
  void add_reference(PageId page);

  KvBudget* budget_ = nullptr;
  KvPageLayout layout_;
  std::uint64_t stride_bytes_;
  BudgetReservation charged_;  // the tables and every used page; dies after them
  AnonymousMemory pages_;
  AnonymousMemory tables_;  // the free tree's words, then the reference counts
  IndexSet taken_;
  std::int32_t* references_;            // with kRemembered where a page is marked
  std::int32_t accessible_ = 0;         // pages [0, accessible_) may be touched
  std::uint64_t accessible_bytes_ = 0;  // >= accessible_ * stride
  std::int32_t ever_used_ = 0;
  int open_batches_ = 0;
  std::int32_t run_begin_ = 0;  // pages [run_begin_, run_end_) are dead but not yet given back
  std::int32_t run_end_ = 0;
  std::int32_t shared_ = 0;
  std::int32_t idle_ = 0;
  std::int32_t peak_used_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t releases_ = 0;
  std::uint64_t copies_ = 0;
};

}  // namespace memdecay
