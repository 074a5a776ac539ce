// PlanWriter: one plan in the making over an OrderedPolicy that stays as it is.
//
// Lives through one call of plan(). Invariant: each page has one action; bytes left = tracked bytes
// - freed bytes; instructions keep their floors, live results until lift_live_floors().
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class PlanWriter {
 public:
  enum class Rounds : std::uint8_t { kOld, kYoung, kAll };

  PlanWriter(const OrderedPolicy& policy, const PlanRequest& request, bool drops_all);

  /// Demotes in the order of damage per byte.
  void demote_all();
  /// Drops units in the order of score: of old rounds and none, and of young ones, which score
  /// `young_bonus` more. Up to `limit`, where given, and demoting first what can be; only that
  /// where the request allows no drops.
  void drop_units(Rounds rounds, double young_bonus, std::optional<double> limit);
  /// Drops single pages of rounds that stay only because another page of theirs is protected.
  void break_rounds();
  /// Results of the latest tool rounds may go from here on.
  void lift_live_floors() { live_floors_ = false; }
  /// Bytes that must go beside those that are planned to.
  std::uint64_t missing_bytes() const {
    return left_bytes_ > budget_bytes_ ? left_bytes_ - budget_bytes_ : 0;
  }
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
  bool has_floor(TrackedPageId page) const;
  bool floors_allow();
  void drop_unit(std::int32_t unit);
  void record(TrackedPageId page, const PlanAction& action);

  const OrderedPolicy& policy_;
  std::uint64_t budget_bytes_;
  bool may_demote_;
  bool may_drop_;
  bool drops_all_;
  bool live_floors_ = true;
  std::uint64_t left_bytes_;
  EvictionPlan plan_;
  std::unordered_map<std::int32_t, Planned> planned_;        // by page
  std::unordered_map<std::int32_t, std::int64_t> removed_;   // tokens by item
  std::unordered_map<std::int32_t, std::int64_t> would_go_;  // scratch of floors_allow()
  std::vector<TrackedPageId> pages_;                         // scratch of drop_unit()
};

}  // namespace memdecay
