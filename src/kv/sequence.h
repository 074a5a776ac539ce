// Sequence: one conversation's tokens in the cache: how many, and which pages hold them.
//
// It is a token count and one PageTable per layer group; it does not know token ids. Operations are
// all or nothing: after a refusal size() and every view are as they were (only trim(), which
// changes nothing that can be seen, has happened). The protocol of a step:
//
//     auto room = sequence.try_append(n, cuts);    // slots for positions [size, size + n)
//     if (!room) ...                               // room.missing_bytes says what to free
//     write K and V of those positions through view() or page_for_write(), layer by layer;
//     attention reads view(): the window of the first new token and all new tokens are there.
//
// Cuts, drop(), try_replace() and pack_pages() work on the unbounded groups (window 0), on all
// alike; groups with a window stay dense, since their window bounds them. A page is named by its
// first position, as view() shows it. size() counts tokens that were dropped too: positions never
// change. What changes is where RoPE puts a token: close_gaps() moves pages up to each other
// virtually, and new tokens are rotated by rope_position(), which then is less than size().
//
// Invariants: every unbounded group holds the same positions, in entries alike where their pages
// have the same number of slots; a page that holds a position which will be written is held by
// this sequence alone (check_writable()); see PageTable for the equations of each group.
// A sequence dies before its KvCache. Its death is its close: pages and bytes go back at once.
// Threads: one owner (the engine thread). Views stay valid until the next non-const call.
// Cost: see PageTable, summed over the groups; try_fork O(pages).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/id.h"
#include "core/paged_kv.h"
#include "kv/kv_budget.h"
#include "kv/page_table.h"

namespace memdecay {

class KvCache;
class Sequence;

/// Owns a sequence; null where a try_ function found no room.
using SequenceHandle = std::unique_ptr<Sequence>;

/// Where a sequence's bytes are. A shared page counts fully in every sequence that names it.
struct SequenceMemory {
  std::int32_t exclusive_pages = 0;
  std::int32_t shared_pages = 0;
  std::uint64_t exclusive_bytes = 0;  ///< what closing the sequence frees, tables aside
  std::uint64_t shared_bytes = 0;
  std::uint64_t table_bytes = 0;  ///< the sequence's record and page tables
};

class Sequence {
 public:
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  SequenceId id() const { return id_; }
  /// Tokens, which is also the position of the next one.
  Position size() const { return size_; }
  /// Positions that were closed before the next token.
  Position rope_offset() const;
  /// The next token's virtual place: what its key and query are rotated by.
  Position rope_position() const { return size_ - rope_offset(); }

  /// Adds `tokens` >= 0 slots. A new page begins at each cut, so the page before it is sealed; a
  /// cut at size() seals the last one. Cuts ascend, in [size(), size() + tokens).
  Room try_append(std::int32_t tokens, std::span<const Position> cuts = {});
  /// Lets pages outside every future query's window go. try_append does it first anyway.
  void trim();

  /// Cuts back to `to` <= size() tokens, dropped ones counted. A page that is cut through goes on
  /// with the next append where it may be written (plain, in the group's own form); behind a page's
  /// end and in a gap the next append begins a page. False, and nothing changed, where a sliding
  /// window has let tokens go that the query at `to` would see; 0 and earliest_cut() and above
  /// always work.
  [[nodiscard]] bool try_truncate(Position to);
  Position earliest_cut() const;

  /// Whether the next append goes on in the last page of the unbounded groups.
  bool is_open() const;
  /// Makes tombstones of these pages, ascending; bytes of pages that nobody else holds are free at
  /// once. REQUIRES: the last page is not among them while is_open().
  void drop(std::span<const Position> first_positions);
  /// Puts the page into another form that the cache is configured with (or back into the group's
  /// own), and seals it. `convert` is called once per unbounded group, in their order. The new page
  /// is reserved before the old one goes, so a full budget refuses even what would shrink. Others
  /// that share the old page keep it. REQUIRES: the page has another form now.
  Room try_replace(Position first_position, KvFormat form, const ConvertPage& convert);
  /// Lays the slots of neighbouring pages, two or more, all sealed and of one form without scales,
  /// into as few new pages as hold them; all but the last come out full. The new pages are reserved
  /// before the old ones go. REQUIRES: fewer pages come out than went in.
  Room pack_pages(std::span<const Position> first_positions);

  /// Closes gaps of at least `smallest_gap` >= 1 places virtually: those that dropped pages left,
  /// at the front and the end too, but not those within packed pages. Keys are not touched: pages
  /// behind a gap say by how much they moved (KvPageRef::rope_shift). Returns the places won; the
  /// last page is sealed unless that is 0. What is computed after it knows of it: such pages must
  /// not be shared as a prefix. REQUIRES: nothing is packed, or all unbounded groups have pages of
  /// one size.
  Position close_gaps(std::int32_t smallest_gap);

  /// A sequence with the same tokens and gaps that shares every page; null when its tables find no
  /// room.
  SequenceHandle try_fork() const;
  /// Takes references to pages whose first fills[i] slots hold the positions from size() on, one
  /// after another; pages[i * groups + g] is page i's of group g. A partly filled last page in the
  /// group's own form is open: the next append copies it, or seals it by a cut. Pages that a window
  /// has passed may be missing. REQUIRES: no group's last page is open; where a group has a window,
  /// all pages but the last are full and what the query at the new size sees is there.
  Room try_adopt(std::span<const std::int32_t> fills, std::span<const PageHandle> pages);
  /// Tokens from the start on whose keys and values are as they were computed, from all before them
  /// in the pages they stand in: nothing of them was dropped, changed its form, or was packed.
  /// Only their pages may be shared as a prefix. A cut back forgets losses behind it.
  Position exact_tokens() const { return std::min(exact_end_, size_); }

  PagedKvView view(LayerGroupId group) const { return table(group).view(); }
  /// Dies unless every page that holds a position of [begin, end) is held by this sequence alone
  /// and may be written.
  void check_writable(Position begin, Position end) const;
  /// The page of `position`, to be written. REQUIRES: position is held; dies if the page is shared,
  /// packed or not in the group's own form.
  KvPageRef page_for_write(LayerGroupId group, Position position) const;

  const PageTable& table(LayerGroupId group) const { return tables_[group.index()]; }
  SequenceMemory memory() const;
  /// kCorrupt names the first broken invariant of this sequence.
  Status check() const;

 private:
  friend class KvCache;
  Sequence(KvCache& cache, SequenceId id, BudgetReservation record);
  static constexpr Position kNothingLost = std::numeric_limits<Position>::max();
  static std::uint64_t record_bytes(std::size_t groups);
  void lose_from(Position position) { exact_end_ = std::min(exact_end_, position); }
  template <typename Plan, typename Apply>
  Room pay_and_apply(const Plan& plan, const Apply& apply);
  const PageTable* first_unbounded() const;
  Status check_alike(const PageTable& first, const PageTable& other) const;

  KvCache& cache_;
  SequenceId id_;
  Position size_ = 0;
  Position exact_end_ = kNothingLost;  // first position of the first page that lost something
  BudgetReservation record_;  // pays for this object and the array of tables; dies after them
  std::vector<PageTable> tables_;
  Sequence* previous_ = nullptr;  // the cache's list of living sequences
  Sequence* next_ = nullptr;
};

}  // namespace memdecay
