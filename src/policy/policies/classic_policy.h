// ClassicPolicy: the decay formula exactly as it was first described (A3).
//
//   S = S0[r] * exp(-lambda[r] * age) * (1 + 0.1 * ln(1 + accesses))
//   lambda = ln(S0 / 0.1) / survival_steps,  system text: lambda = 0
//
// An access is a step in which a page got more than its tokens' uniform share of the attention in
// that batch. Ordered by ln S, where age moves a region as a whole; explain() shows S itself.
// Region heads are compared as in MemdecayPolicy. Its known faults (design, section 6) are kept.
#pragma once

#include <array>
#include <vector>

#include "policy/policies/memdecay_policy.h"
#include "policy/policies/ordered_policy.h"

namespace memdecay {

struct ClassicOptions {
  ProtectionOptions protection = {};
  LadderOptions ladder = {};
  std::array<double, kRegionCount> initial = kInitialScores;
  std::array<double, kRegionCount> decay = default_region_decay();
};

class ClassicPolicy final : public OrderedPolicy {
 public:
  explicit ClassicPolicy(const ClassicOptions& options = {});
  std::string_view name() const override { return "memdecay-classic"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<ClassicPolicy>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kAttentionMass; }
  /// S of the page alone, now. REQUIRES: tracked.
  double classic_score_of(TrackedPageId page) const;

 private:
  double key(TrackedPageId page, Region as) const override;
  double offset(int lane) const override;
  void on_track(const PageMeta& page, bool is_new) override;
  void on_observe(const EvidenceBatch& batch) override;
  void on_inherit(const PackedPage& page) override;
  std::optional<double> gentle_limit(const PlanRequest& request) const override;
  std::string describe(TrackedPageId page, double score) const override;

  ClassicOptions options_;
  std::vector<std::int64_t> accesses_;  // by page
};

}  // namespace memdecay
