// KeyDirections: what one session's keys look like on the whole, and each of its pages against that
// (model/transformer/key_similarity.h).
//
// A page's sum of unit keys is read once, after it was sealed, and kept in fp16 until the page is
// forgotten; the direction is the sum over the pages known. Sums are added up exactly, so it
// depends on which pages are known and not on how they came and went. Judging a page again, against
// the direction as it is now, reads its sum only: it works whatever form the page has by then. Each
// sum brings its own budget. Threads: the engine's. Cost: read as add_key_directions, judge
// O(direction) and the same a page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/paged_kv.h"
#include "kv/kv_budget.h"
#include "policy/evidence.h"

namespace memdecay {

class KeyDirections {
 public:
  /// `layout` is of the pages of the session's evictable group, in any form.
  explicit KeyDirections(const KvPageLayout& layout);

  /// Bytes that a page's sum takes.
  static std::uint64_t page_bytes(const KvPageLayout& layout);
  std::uint64_t held_bytes() const { return held_bytes_; }

  bool knows(TrackedPageId page) const;
  /// REQUIRES: the page is not known; charge.bytes() == page_bytes().
  void read(TrackedPageId page, const KvPageRef& ref, BudgetReservation charge);
  /// Pages that are not known are ignored.
  void forget(TrackedPageId page);
  /// The similarities of at most `most` known pages, every page in its turn.
  std::span<const PageEvidence> judge(int most);

 private:
  struct Entry {
    std::vector<std::uint16_t> sum;  // halves; empty: not known
    int tokens = 0;
    BudgetReservation charge;
  };
  void add_to_direction(const Entry& entry, double sign);
  float similarity(const Entry& entry);

  KvPageLayout layout_;
  std::vector<Entry> entries_;     // by page
  std::vector<double> direction_;  // of all known pages
  std::vector<float> unit_, sum_;  // of judge() and read()
  std::vector<PageEvidence> judged_;
  std::size_t next_ = 0;  // page to be judged
  std::uint64_t held_bytes_ = 0;
};

}  // namespace memdecay
