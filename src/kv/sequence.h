// Sequence: one conversation's tokens in the cache: how many, and which pages hold them.
//
// It is a token count and one PageTable per layer group; it does not know token ids. Operations are
// all or nothing: after a refusal size() and every view are as they were (only trim(), which
// changes nothing that can be seen, has happened). The protocol of a step:
//
//     auto room = sequence.try_append(n);          // slots for positions [size, size + n)
//     if (!room) ...                               // room.missing_bytes says what to free
//     write K and V of those positions through view() or page_for_write(), layer by layer;
//     attention reads view(): the window of the first new token and all new tokens are there.
//
// Invariants: every group holds the same positions up to size(); a page that holds a position
// which will be written is held by this sequence alone (check_writable()); see PageTable for the
// equations of each group.
// A sequence dies before its KvCache. Its death is its close: pages and bytes go back at once.
// Threads: one owner (the engine thread). Views stay valid until the next non-const call.
// Cost: try_append and try_truncate O(pages touched), try_fork O(pages), the rest O(groups).
#pragma once

#include <cstdint>
#include <memory>
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

  /// Adds `tokens` >= 0 slots. A refusal says which bytes were missing.
  Room try_append(std::int32_t tokens);
  /// Bytes that try_append(tokens) would take from the budget now.
  std::uint64_t bytes_to_append(std::int32_t tokens) const;
  /// Lets pages outside every future query's window go. try_append does it first anyway.
  void trim();

  /// Cuts back to `to` <= size() tokens. False, and nothing changed, where a sliding window has let
  /// tokens go that the query at `to` would see; 0 and earliest_cut() and above always work.
  [[nodiscard]] bool try_truncate(Position to);
  Position earliest_cut() const;

  /// A sequence with the same tokens that shares every page; null when its tables find no room.
  SequenceHandle try_fork() const;

  PagedKvView view(LayerGroupId group) const { return table(group).view(); }
  /// Dies unless every page that holds a position of [begin, end) is held by this sequence alone.
  void check_writable(Position begin, Position end) const;
  /// The page of `position`, to be written. REQUIRES: position is held; dies if the page is shared.
  KvPageRef page_for_write(LayerGroupId group, Position position) const;

  const PageTable& table(LayerGroupId group) const { return tables_[group.index()]; }
  SequenceMemory memory() const;
  /// kCorrupt names the first broken invariant of this sequence.
  Status check() const;

 private:
  friend class KvCache;
  Sequence(KvCache& cache, SequenceId id, BudgetReservation record);
  static std::uint64_t record_bytes(std::size_t groups);

  KvCache& cache_;
  SequenceId id_;
  Position size_ = 0;
  BudgetReservation record_;  // pays for this object and the array of tables; dies after them
  std::vector<PageTable> tables_;
  Sequence* previous_ = nullptr;  // the cache's list of living sequences
  Sequence* next_ = nullptr;
};

}  // namespace memdecay
