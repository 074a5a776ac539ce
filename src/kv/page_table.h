// PageTable: one sequence's pages of one layer group, oldest first, with gaps where pages were
// dropped.
//
// Entry i owns one reference to a page and says which positions its slots hold: filled(i) many from
// first(i) on, without gaps in a plain page, in two or more runs in a packed one (PackedRuns). With
// `size` tokens in the sequence, pages of T slots and end(i) = its last position + 1:
//     1 <= filled(i) <= T,    end(i) - first(i) >= filled(i), equal in a plain page,
//     end(i) <= first(i + 1),    end(last) <= size.
// Positions below `size` that no entry holds are tombstones: logically there, physically gone.
// is_open() says that the next append goes on in the last page, and implies
//     end(last) = size,    filled(last) < T,    the last page is plain and in the group's own form.
// Every other page is sealed: it is never written again.
//
// Gaps can be closed virtually (core/paged_kv.h): entry i stands at place(i) = first(i) -
// closed(i), closed(i) its closed_before, and the next token at size - rope_offset(). With w(i) the
// rope_offset when the entry was written, keys are rotated by first(i) - w(i), and w(i) = closed(i)
// + shift(i):
//     0 <= closed(i) + shift(i),    shift(i) <= 0,
//     closed(i) <= closed(i + 1),    place(i) + end(i) - first(i) <= place(i + 1),
// and the same of the last entry and the next token. An open page has shift 0 and closed(last) =
// rope_offset(). Gaps within a packed page stay.
//
// A table with a window w > 0 is dense. It ignores cuts, and drop, replace, pack and close_gaps
// leave it as it is; old pages go at its front instead. With first = first_page_number() (0 without
// a window):
//     first(i) = (first + i) * T,    filled = T in every page but the last,    end(last) = size,
//     first * T <= max(0, size - w + 1): the query at position `size` sees every token it may see.
// `cut_back` more tokens are kept, so that after trim(s) any cut back to >= s - cut_back still has
// its window whole. A table without a window obeys the same equations until it is first cut.
//
// What needs memory is plan, pay, apply: plan_x() says what is needed, the caller reserves it for
// all groups, x() cannot fail. A shared last page that will be written is copied first.
// Threads: one owner. Cost: lookups O(log entries); append and truncate O(pages touched); replace
// O(log entries) and the conversion; pack and drop one sweep over the entries behind the first
// named one; trim O(pages kept).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/paged_kv.h"
#include "kv/group_pools.h"
#include "kv/kv_budget.h"
#include "kv/packed_runs.h"
#include "kv/page_pool.h"
#include "kv/paid_vector.h"

namespace memdecay {

/// Writes a page's `filled` first slots in another form. The target page is zero before.
using ConvertPage =
    std::function<void(const KvPageLayout& source_layout, const std::byte* source,
                       const KvPageLayout& target_layout, std::byte* target, std::int32_t filled)>;

class PageTable {
 public:
  /// What an operation needs. bytes = pages * stride + new arrays + what it holds while it works.
  struct Need {
    PagePool* pool = nullptr;      ///< where the pages come from
    std::int32_t pages = 0;        ///< new ones and, with `copies_last`, the copy
    bool copies_last = false;      ///< the last page is shared and will be written
    std::size_t capacity = 0;      ///< entries that the arrays must grow to; 0: they do
    std::size_t runs = 0;          ///< most runs that packing makes
    std::size_t run_capacity = 0;  ///< runs that their array must grow to; 0: it does
    std::uint64_t bytes = 0;
  };

  /// REQUIRES: window >= 0 (0: everything stays), cut_back >= 0; the pools outlive the table.
  PageTable(const GroupPools& pools, std::int32_t window, std::int32_t cut_back);
  PageTable(PageTable&&) noexcept = default;
  PageTable& operator=(PageTable&&) = delete;
  ~PageTable();

  PagedKvView view() const { return {&pool().layout(), refs_.items(), first_page_number_}; }
  /// Of the group's own form.
  const PagePool& pool() const { return pools_->own(); }
  std::int32_t window() const { return window_; }
  std::int32_t first_page_number() const { return first_page_number_; }
  bool is_open() const { return open_; }
  /// Positions that were closed before the next token.
  Position rope_offset() const { return closed_; }
  const std::vector<PageHandle>& pages() const { return pages_.items(); }
  const PackedRuns& runs() const { return runs_; }
  /// The positions whose keys and values are there, ascending, in as few runs as can be. Cost:
  /// O(pages).
  std::vector<PositionRun> held() const;
  std::uint64_t table_bytes() const {
    return pages_.bytes() + refs_.bytes() + runs_.memory().bytes();
  }

  /// The entry that holds `position`; empty for a tombstone and for what was never there.
  std::optional<std::size_t> find(Position position) const;
  /// Dies unless every position of [begin, end) is held by a page of this table alone that may be
  /// written: plain and in the group's own form.
  void check_writable(Position begin, Position end) const;

  /// REQUIRES of cuts: ascending, in [size, size + tokens). A new page begins at each.
  Need plan_append(Position size, std::int32_t tokens, std::span<const Position> cuts) const;
  /// Grows from `size` to `size + tokens`. REQUIRES, here and below: `need` is what plan_x() with
  /// the same arguments says now, need.pool is prepared for need.pages, paid.bytes() >= need.bytes.
  void append(Position size, std::int32_t tokens, std::span<const Position> cuts, const Need& need,
              BudgetReservation& paid);

  /// REQUIRES: pages begin at these positions, ascending; the last page is not among them while it
  /// is open.
  void drop(std::span<const Position> first_positions);

  /// REQUIRES: a page of another form begins at first_position; the group has a pool of `form`.
  Need plan_replace(Position first_position, KvFormat form) const;
  /// The new page exists before the old reference goes. The page is sealed afterwards.
  void replace(Position first_position, const ConvertPage& convert, const Need& need,
               BudgetReservation& paid);

  /// REQUIRES: two or more neighbouring sealed pages of one form without scales, with no closed gap
  /// between them, begin at these positions; their slots fit in fewer pages.
  Need plan_pack(std::span<const Position> first_positions) const;
  void pack(std::span<const Position> first_positions, const Need& need, BudgetReservation& paid);

  /// Moves what stands behind a gap of at least `smallest_gap` >= 1 places up to what stands before
  /// it, and the next token last; returns the places won. Seals the last page unless that is 0.
  Position close_gaps(Position size, std::int32_t smallest_gap);

  /// Entries for `count` adopted pages behind those there are. REQUIRES: is_open() is false.
  Need plan_adopt(std::size_t count) const;
  void prepare_adopt(const Need& need, BudgetReservation& paid) { hold(need.capacity, paid); }
  /// Takes a page whose first `filled` slots go on where the table ends. A handle without a page
  /// says that the window has passed it: it and all before it go. REQUIRES: its pool is one of the
  /// group's, 1 <= filled <= T, prepare_adopt() counted it; with a window only the last page is not
  /// full, and what is left holds the window of the next query; without one there is a page.
  void adopt(PageHandle page, std::int32_t filled);

  /// Lets pages go that no query at position `next` or later, nor after a cut back by `cut_back`,
  /// can see.
  void trim(Position next);
  /// The smallest size > 0 to which a cut back leaves the window whole.
  Position earliest_cut() const;
  /// Positions from `to` on go. A page that loses some and now ends at `to` is open afterwards
  /// where it may be written. What was closed before the last entry left is closed before the next
  /// token. REQUIRES: to = 0, or earliest_cut() <= to; to < size.
  void truncate(Position to);

  /// Bytes that a copy of this table needs for its arrays.
  std::uint64_t fork_bytes() const;
  /// A table that shares every page. REQUIRES: paid.bytes() >= fork_bytes().
  PageTable fork(BudgetReservation& paid) const;

  /// Tests the equations above for a sequence of `size` tokens.
  Status check(Position size) const;

 private:
  static constexpr std::uint64_t kEntryBytes = sizeof(PageHandle) + sizeof(KvPageRef);
  std::int32_t page_tokens() const { return pool().layout().page_tokens; }
  KvFormat own_form() const { return pool().layout().format; }
  bool is_dense() const { return window_ > 0; }
  std::size_t index_of(Position first_position) const;
  std::size_t index_at(Position position) const;
  bool may_be_written(const KvPageRef& page) const;
  void hold(std::size_t capacity, BudgetReservation& paid);
  void push(PageHandle page, Position first_position, std::int32_t filled);
  void fill(Position begin, Position end, BudgetReservation& paid);
  void keep_first(std::size_t count);
  Status check_entry(std::size_t i, Position begin, Position end) const;
  Status check_places(Position size) const;
  Status check_window(Position size) const;

  const GroupPools* pools_;
  std::int32_t window_;
  std::int32_t cut_back_;
  std::int32_t first_page_number_ = 0;
  bool open_ = false;
  Position closed_ = 0;
  PaidVector<PageHandle> pages_;
  PaidVector<KvPageRef> refs_;  // what kernels see, entry for entry
  PackedRuns runs_;
};

}  // namespace memdecay
