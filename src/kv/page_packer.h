// PagePacker: lays the slots of several pages one after another into new pages, for PageTable.
//
// Slots keep their order; a new page is full before the next one begins. What comes out is what a
// PageTable needs in place of the old entries: handles, view entries, and the runs of those new
// pages whose positions have gaps.
// Threads: one owner. Cost: the bytes that are copied. Its arrays are as large as the constructor
// is told and never grow; bytes_for() says what they hold, for the budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/paged_kv.h"
#include "kv/packed_runs.h"
#include "kv/page_pool.h"

namespace memdecay {

class PagePacker {
 public:
  /// REQUIRES: `pool` is prepared for `pages` pages that `paid` pays; the runs that will be added,
  /// cut at the new pages' borders, are at most `runs`.
  PagePacker(PagePool& pool, std::size_t pages, std::size_t runs, BudgetReservation& paid);
  static std::uint64_t bytes_for(std::size_t pages, std::size_t runs);

  /// The slots of `source` from `slot` on, which hold the positions of `run`.
  void add(const KvPageRef& source, std::int32_t slot, PositionRun run);
  /// REQUIRES: called once, after the last add().
  void finish() { close_page(); }

  std::vector<PageHandle>& pages() { return pages_; }
  const std::vector<KvPageRef>& refs() const { return refs_; }
  const std::vector<PositionRun>& runs() const { return runs_; }

 private:
  void open_page(Position first_position);
  void close_page();
  void note(PositionRun run);

  PagePool& pool_;
  BudgetReservation& paid_;
  std::vector<PageHandle> pages_;
  std::vector<KvPageRef> refs_;
  std::vector<PositionRun> runs_;
  std::size_t first_run_ = 0;  // of the page that is being filled
};

}  // namespace memdecay
