// OrderedPolicy: a policy that is an order. It does all that policies share (protection, units,
// floors, plans, the ladder of forms); a subclass says what a page is worth.
//
// Worth is a *key* in a *lane*, and score = key - offset(lane): what changes with time for all
// pages of a lane alike goes into the offset, so time never moves a page within its lane. The
// lowest score goes first. A tool round's key is the token-weighted mean of its core pages', in the
// lane of its strongest region. With the ladder, pages are demoted in the order of damage per byte
// freed (rounding error added * exp(score) / bytes) until the budget holds, and only then dropped.
//
// Threads: one owner. Cost as eviction_policy.h says; a page of a round costs the round's size.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "policy/eviction_policy.h"
#include "policy/page_book.h"

namespace memdecay {

struct LadderOptions {
  bool enabled = false;
  PageForm lowest = PageForm::kInt4;
  PageForm lowest_pinned = PageForm::kInt8;
  PageForm lowest_newest = PageForm::kInt8;  ///< of the pages that are never dropped
  /// Exact values keep this form until no other page has a finer one than `lowest` (D8); only then
  /// do they take fewer bits too, before anything is dropped.
  PageForm lowest_exact = PageForm::kK8V4;
  float exact_from_share = 0.10F;  ///< a page that holds this much of them
};

class PlanWriter;

class OrderedPolicy : public EvictionPolicy {
 public:
  void track(const PageMeta& page) final;
  bool wants(EvidenceKind /*kind*/) const override { return false; }
  void observe(const EvidenceBatch& batch) final;
  void advance(const PolicyTime& now) final;
  EvictionPlan plan(const PlanRequest& request) const final;
  void release(TrackedPageId page) final;
  void repack(std::span<const TrackedPageId> before, std::span<const PackedPage> after) final;
  void cap_pins(std::uint64_t bytes) final;
  Explanation explain(TrackedPageId page) const final;
  std::uint64_t tracked_bytes() const final { return book_.bytes(); }
  std::uint64_t update_steps() const final;

 protected:
  /// `lanes` is 1 or kRegionCount.
  OrderedPolicy(const ProtectionOptions& protection, const LadderOptions& ladder, int lanes);

  virtual double key(TrackedPageId page, Region as) const = 0;
  /// The region that a page counts as.
  virtual Region region_of(const PageMeta& page) const { return page.region; }
  virtual double offset(int /*lane*/) const { return 0; }
  virtual void on_track(const PageMeta& /*page*/, bool /*is_new*/) {}
  virtual void on_observe(const EvidenceBatch& /*batch*/) {}
  /// on_track() has begun the page anew; the parts are tracked still, book() knows them.
  virtual void on_inherit(const PackedPage& /*page*/) {}
  virtual void on_advance(const PolicyTime& /*now*/) {}
  /// Units below this score may go in a gentle plan; by default none.
  virtual std::optional<double> gentle_limit(const PlanRequest& /*request*/) const { return {}; }
  /// A pressed plan takes all that may go, however little would do.
  virtual bool drops_all() const { return false; }
  /// What the score is made of, for a person.
  virtual std::string describe(TrackedPageId page, double score) const;

  /// Keys that moved less than this since they were placed stay where they are.
  void set_rekey_threshold(double threshold) { rekey_threshold_ = threshold; }
  /// The page's key has changed. Within on_observe only.
  void rekey(TrackedPageId page);
  const PageBook& book() const { return book_; }
  const PolicyTime& now() const { return now_; }
  int lane_of(Region region) const { return lanes_ == 1 ? 0 : static_cast<int>(region); }

 private:
  friend class PlanWriter;
  struct Placement {
    HeapKey key;
    Region region;
  };
  struct UnitPlace {
    std::int8_t drop_heap = -1;  // in drop_, both halves
    std::int8_t demote_heap = -1;
    double drop_key = 0;
  };

  /// What a pressed plan drops, until it has enough.
  void drop_by_score(PlanWriter& writer) const;
  UnitPlace& place_of(std::int32_t unit);
  Placement placement(std::int32_t unit) const;
  void replace_drop(std::int32_t unit, bool forced);
  void replace_demote(TrackedPageId page);
  void replace_touched();
  PageForm lowest_form(const PageMeta& page) const;
  std::optional<PageForm> next_form(const PageMeta& page, PageForm from) const;
  /// Whether the form is one that the page takes only when all others have given.
  bool reluctant(const PageMeta& page, PageForm to) const;
  double demote_weight(const PageMeta& page, PageForm from, PageForm to) const;
  bool demotable(TrackedPageId page) const;

  PageBook book_;
  LadderOptions ladder_;
  int lanes_;
  PolicyTime now_;
  double rekey_threshold_ = 0;
  std::vector<IndexedHeap> drop_;    // [lane], then [lane] of young rounds
  std::vector<IndexedHeap> demote_;  // [lane]
  std::vector<UnitPlace> places_;    // by unit
  std::vector<std::int32_t> dirty_rounds_;
  mutable std::vector<TrackedPageId> scratch_;  // of placement(): no allocation while observing
};

}  // namespace memdecay
