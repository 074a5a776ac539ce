// PageBook: what every policy must know about its pages before any order: who is protected, which
// pages stand and fall together, how much of an item is left.
//
// A *unit* is what is dropped at once: a page alone, or the core of a tool round with the rest of
// the round. Units are numbered in one space: 2 * page, or 2 * round + 1. The book keeps no order
// of worth; after each change touched() names the units whose place may have changed.
//
// Invariants: a unit is droppable when none of its pages is shielded; the newest pages are the
// newest_pages highest positions; granted pins <= pin_cap_bytes.
// Threads: one owner. Cost: track, release O(log n), plus the pages of rounds that stop being
// young, or are again.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "policy/eviction_plan.h"
#include "policy/indexed_heap.h"
#include "policy/page_meta.h"

namespace memdecay {

struct ProtectionOptions {
  std::int32_t sink_tokens = 4;  ///< pages that hold one of the first positions stay
  std::int32_t newest_pages = 8;
  std::int32_t lag_rounds = 0;  ///< the latest tool rounds are young: no gentle plan, and
  /// in a pressed one they score so much higher; infinite: they go after all else.
  double lag_bonus = std::numeric_limits<double>::infinity();
  /// Of every instruction's tokens, and of the results of the latest lag_rounds tool rounds, which
  /// give theirs up when nothing else is left to go.
  double floor_share = 0.0;
  std::uint64_t pin_cap_bytes = std::numeric_limits<std::uint64_t>::max();
};

class PageBook {
 public:
  explicit PageBook(const ProtectionOptions& options) : options_(options) {}

  void track(const PageMeta& meta);
  void release(TrackedPageId page);
  /// As EvictionPolicy::repack().
  void repack(std::span<const TrackedPageId> before, std::span<const PackedPage> after);
  /// As EvictionPolicy::cap_pins().
  void cap_pins(std::uint64_t bytes);
  bool tracked(TrackedPageId page) const;
  const PageMeta& meta(TrackedPageId page) const { return pages_[page.index()].meta; }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t page_count() const { return count_; }

  /// The page's own protection; kRoundMate where another page of its round is protected.
  Shield shield(TrackedPageId page) const;
  bool pin_refused(TrackedPageId page) const;
  /// All pages that only kRoundMate shields. O(pages ever tracked).
  std::vector<TrackedPageId> round_mates() const;

  const ProtectionOptions& options() const { return options_; }
  std::int32_t unit_of(TrackedPageId page) const;
  static bool is_round(std::int32_t unit) { return unit % 2 != 0; }
  bool droppable(std::int32_t unit) const;
  /// A unit of one of the latest lag_rounds tool rounds.
  bool young(std::int32_t unit) const;
  /// Whether an item's floor counts for the page: an instruction's, or of a round that is young.
  bool live(TrackedPageId page) const {
    return meta(page).tool_round == kNoToolRound || young(2 * page.value());
  }
  /// Appends the pages that go with the unit. With `core_only`, those that its worth is made of.
  void pages_of(std::int32_t unit, bool core_only, std::vector<TrackedPageId>& out) const;

  /// Tokens of the item that may still go, given that `removed` of them are planned to go.
  std::int64_t spare_tokens(std::int32_t item, std::int64_t removed) const;

  std::span<const std::int32_t> touched() const { return touched_; }
  void clear_touched() { touched_.clear(); }
  std::uint64_t steps() const { return newest_.steps() + older_.steps(); }

 private:
  struct PageState {
    PageMeta meta;
    bool tracked = false;
    bool newest = false;
    bool pin_granted = false;
    Shield shield = Shield::kUntracked;
    std::int32_t previous = -1;  // pages of the same round
    std::int32_t next = -1;
  };
  struct RoundState {
    std::int32_t first = -1;
    std::int32_t shielded = 0;
    std::int32_t core = 0;
  };
  struct ItemState {
    std::int64_t total = 0;
    std::int64_t kept = 0;
  };

  bool in_core(const PageMeta& meta) const {
    return meta.tool_core && meta.tool_round != kNoToolRound;
  }
  void forget(TrackedPageId page, bool evicted);
  void touch(const PageState& state);
  void refresh(PageState& state);
  void grant_pin(PageState& state);
  void revoke_pin(PageState& state);
  void enter_round(PageState& state);
  void leave_round(PageState& state);
  void enter_item(const PageMeta& meta);
  void leave_item(const PageMeta& meta, bool evicted);
  void enter_newest(PageState& state);
  void leave_newest(PageState& state);
  void see_round(std::int32_t round);
  void lose_latest_rounds();
  void touch_round(std::int32_t round);

  ProtectionOptions options_;
  std::vector<PageState> pages_;    // by page
  std::vector<RoundState> rounds_;  // by tool round
  std::vector<ItemState> items_;    // by item
  IndexedHeap newest_;              // the window's pages, lowest position first
  IndexedHeap older_;               // all others, highest position first
  std::int32_t latest_round_ = -1;  // that has pages
  std::uint64_t bytes_ = 0;
  std::uint64_t pinned_bytes_ = 0;
  std::size_t count_ = 0;
  std::vector<std::int32_t> touched_;
};

}  // namespace memdecay
