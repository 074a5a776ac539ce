// EvictionPolicy: which pages of one session to demote or drop, and why. The one interface of
// memdecay, of its classic form and of every baseline.
//
// It is pure: no clock (steps and seconds are given), no I/O, no threads, and it moves no bytes: a
// plan is a proposal, and who carries it out says so with release() and track().
//
// Invariants of every plan (policy_contract_test.cc holds them for every implementation):
//   - no sink, none of the newest pages, no pinned page within the cap, no open page is dropped;
//   - the core of a tool round (its calls and what is kept of their results) is dropped whole, with
//     the rest of the round, or not at all, unless nothing else is left and part of it is
//     protected;
//   - of every item (an instruction, a live result) a minimum share of its tokens stays;
//   - bytes tracked - freed <= budget, or missing_bytes says by how much not and nothing droppable
//     is left;
//   - the same calls give the same plan.
//
// Threads: one owner. Cost, n pages, R regions, k actions of a plan, f pages held by floors:
// track, release O(log n), repack the same for each page; observe O(pages in the batch * log n);
// advance O(R); plan O(R + (k + f) log(k + f + R)), and where that leaves bytes missing once more
// O(pages ever tracked), to find rounds that may break.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "policy/eviction_plan.h"
#include "policy/evidence.h"
#include "policy/page_meta.h"

namespace memdecay {

struct PolicyTime {
  std::int64_t step = 0;  ///< tokens so far; never falls
  double seconds = 0;     ///< on any clock of the caller; only differences count
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  virtual std::string_view name() const = 0;
  /// The same policy with all that it knows, for a fork of its session. Cost: O(n).
  virtual std::unique_ptr<EvictionPolicy> clone() const = 0;

  /// Takes a page in; of a page already tracked, replaces what is known (sealed, another form or
  /// region, an item that ended) and keeps its evidence. id and position never change.
  virtual void track(const PageMeta& page) = 0;
  /// Whether evidence of this kind changes anything here; what is not wanted need not be measured.
  virtual bool wants(EvidenceKind kind) const = 0;
  /// Evidence about tracked pages; of others it is ignored. Not finite is a bug of the caller.
  virtual void observe(const EvidenceBatch& batch) = 0;
  virtual void advance(const PolicyTime& now) = 0;
  /// Which pages to demote or drop so that the tracked bytes meet the budget.
  virtual EvictionPlan plan(const PlanRequest& request) const = 0;
  /// Whether what was dropped is to be computed again when the next turn begins.
  virtual bool recomputes() const { return false; }
  /// Forgets a page that is gone, for whatever reason. REQUIRES: tracked.
  virtual void release(TrackedPageId page) = 0;
  /// The pages of `before` were laid together into those of `after`: nothing is gone, so floors and
  /// evidence stand. A new page takes over what was seen of its parts. REQUIRES: all of `before`
  /// are tracked, no id of `after` is, and the parts of `after` are the tokens of `before`.
  virtual void repack(std::span<const TrackedPageId> before, std::span<const PackedPage> after) = 0;
  /// From now on pins hold up to so many bytes. Of those asked for, the lowest positions' come
  /// first. Cost: O(n log n).
  virtual void cap_pins(std::uint64_t bytes) = 0;
  virtual Explanation explain(TrackedPageId page) const = 0;

  virtual std::uint64_t tracked_bytes() const = 0;
  /// Comparisons of all calls but plan() so far: what tests of the order of growth count.
  virtual std::uint64_t update_steps() const = 0;
};

using EvictionPolicyHandle = std::unique_ptr<EvictionPolicy>;

}  // namespace memdecay
