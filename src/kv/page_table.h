// PageTable: one sequence's pages of one layer group, oldest first.
//
// Entry i holds the tokens of positions [(first + i) * T, (first + i + 1) * T), T = page_tokens and
// first = first_page_number(), and owns one reference to its page. With `size` tokens in the
// sequence:
//     pages = ceil(size / T) - first,    filled = T in every page but the last,
//     filled of the last = size - (number of the last) * T, in 1..T.
// In a group with a window w > 0 old pages are let go: first * T <= max(0, size - w + 1), so every
// token that the query at position `size` sees is there. `cut_back` more tokens are kept, so that
// after trim(s) any cut back to >= s - cut_back still has its window whole.
//
// Appending is plan, pay, apply: plan_append() says what is needed, the caller reserves it for all
// groups, append() cannot fail. A shared last page that will be written is copied first.
// Threads: one owner. Cost: append and truncate O(pages touched), trim O(pages kept).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/paged_kv.h"
#include "kv/kv_budget.h"
#include "kv/page_pool.h"

namespace memdecay {

class PageTable {
 public:
  /// What an append needs. bytes = pages * stride + the table's new arrays.
  struct Need {
    std::int32_t pages = 0;    ///< new ones and, with `copies_last`, the copy
    bool copies_last = false;  ///< the last page is shared and partly filled
    std::size_t capacity = 0;  ///< entries that the arrays must hold
    std::uint64_t bytes = 0;
  };

  /// REQUIRES: window >= 0 (0: everything stays), cut_back >= 0; the pool outlives the table.
  PageTable(PagePool& pool, std::int32_t window, std::int32_t cut_back);
  PageTable(PageTable&&) noexcept = default;
  PageTable& operator=(PageTable&&) = delete;
  ~PageTable();

  PagedKvView view() const { return {&pool_->layout(), refs_, first_page_number_}; }
  const PagePool& pool() const { return *pool_; }
  std::int32_t window() const { return window_; }
  std::int32_t first_page_number() const { return first_page_number_; }
  const std::vector<PageHandle>& pages() const { return pages_; }
  std::uint64_t table_bytes() const { return memory_.bytes(); }

  Need plan_append(Position size, std::int32_t tokens) const;
  /// Grows from `size` to `size + tokens`. REQUIRES: need = plan_append(size, tokens), the pool is
  /// prepared for need.pages, paid.bytes() >= need.bytes.
  void append(Position size, std::int32_t tokens, const Need& need, BudgetReservation& paid);

  /// Lets pages go that no query at position `next` or later, nor after a cut back by `cut_back`,
  /// can see.
  void trim(Position next);
  /// The smallest size > 0 to which a cut back leaves the window whole.
  Position earliest_cut() const;
  /// REQUIRES: to = 0, or earliest_cut() <= to <= size.
  void truncate(Position to);

  /// Bytes that a copy of this table needs for its arrays.
  std::uint64_t fork_bytes() const;
  /// A table that shares every page. REQUIRES: paid.bytes() >= fork_bytes().
  PageTable fork(BudgetReservation& paid) const;

  /// Tests the equations above for a sequence of `size` tokens.
  Status check(Position size) const;

 private:
  static constexpr std::uint64_t kEntryBytes = sizeof(PageHandle) + sizeof(KvPageRef);
  std::int32_t page_tokens() const { return pool_->layout().page_tokens; }
  std::int32_t end_page_number() const {
    return first_page_number_ + static_cast<std::int32_t>(pages_.size());
  }
  void hold(std::size_t capacity, BudgetReservation& paid);
  void push(PageHandle page);

  PagePool* pool_;
  std::int32_t window_;
  std::int32_t cut_back_;
  std::int32_t first_page_number_ = 0;
  BudgetReservation memory_;  // pays for the capacity of both arrays; dies after them
  std::vector<PageHandle> pages_;
  std::vector<KvPageRef> refs_;  // what kernels see, entry for entry
};

}  // namespace memdecay
