// PlanWriter: one plan in the making over an OrderedPolicy that stays as it is.
//
// Lives through one call of plan(). Invariant: each page has one action; bytes left = tracked bytes
// - freed bytes; items keep their floors.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "policy/ordered_policy.h"

namespace memdecay {

class PlanWriter {
 public:
  PlanWriter(const OrderedPolicy& policy, std::uint64_t budget_bytes, bool drops_all);

  /// Demotes in the order of damage per byte.
  void demote_all();
  /// Drops units of the old or the young rounds in the order of score; up to `limit`, where given,
  /// demoting first what can be.
  void drop_units(bool young, std::optional<double> limit);
  EvictionPlan take();

 private:
  struct Planned {
    std::size_t action;
    bool dropped;
  };

  bool done() const { return !drops_all_ && left_bytes_ <= budget_bytes_; }
  bool dropped(TrackedPageId page) const;
  void demote(TrackedPageId page, PageForm form);
  bool demote_to_lowest(std::int32_t unit);
  void drop(TrackedPageId page);
  bool floors_allow();
  void drop_unit(std::int32_t unit);
  void record(TrackedPageId page, const PlanAction& action);

  const OrderedPolicy& policy_;
  std::uint64_t budget_bytes_;
  bool drops_all_;
  std::uint64_t left_bytes_;
  EvictionPlan plan_;
  std::unordered_map<std::int32_t, Planned> planned_;        // by page
  std::unordered_map<std::int32_t, std::int64_t> removed_;   // tokens by item
  std::unordered_map<std::int32_t, std::int64_t> would_go_;  // scratch of floors_allow()
  std::vector<TrackedPageId> pages_;                         // scratch of drop_unit()
};

}  // namespace memdecay
