// PackedRuns: which positions the slots of packed pages hold, as runs, for one PageTable.
//
// A plain page's slot s holds position first_position + s and needs no entry here. A packed page
// was made from pages with gaps between them: its slots hold two or more runs of positions, in
// order. The runs of all packed pages of a table lie in one array, ascending; a page's runs begin
// at its first_position and hold `filled` tokens together. A page whose positions have no gap is
// plain, however it came about.
// Threads: one owner. Cost: of() and what is built on it O(log runs + the page's runs); sweep() and
// insert() O(runs). Memory is paid as PaidVector says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/id.h"
#include "core/paged_kv.h"
#include "core/status.h"
#include "kv/paid_vector.h"

namespace memdecay {

/// Positions [first, first + tokens).
struct PositionRun {
  Position first = 0;
  std::int32_t tokens = 0;
  Position end() const { return first + tokens; }
  friend bool operator==(const PositionRun&, const PositionRun&) = default;
};

class PackedRuns {
 public:
  /// The page's runs; empty for a plain page.
  std::span<const PositionRun> of(const KvPageRef& page) const;
  /// One more than the page's last position.
  Position end_of(const KvPageRef& page) const;
  /// How many of the page's slots hold positions below `to`.
  std::int32_t slots_before(const KvPageRef& page, Position to) const;

  /// Positions from `to` on go.
  void cut(Position to);
  /// Marks the page's runs as gone; sweep() takes what is marked away. Other pages' runs stand.
  void forget(const KvPageRef& page);
  void sweep();
  /// REQUIRES: `runs` ascend and lie between two neighbours; grow() made room.
  void insert(std::span<const PositionRun> runs);

  std::size_t count() const { return runs_.items().size(); }
  PaidVector<PositionRun>& memory() { return runs_; }
  const PaidVector<PositionRun>& memory() const { return runs_; }

  /// Tests that every run belongs to one of `pages`, with a gap before the next.
  Status check(std::span<const KvPageRef> pages) const;

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  Range range_of(const KvPageRef& page) const;
  PaidVector<PositionRun> runs_;
};

}  // namespace memdecay
