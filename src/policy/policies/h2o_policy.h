// H2oPolicy: heavy hitters. The lowest attention mass accumulated over all steps goes first
// (H2O: Zhang and others, 2023), by page, summed over queries; it never decays.
#pragma once

#include <vector>

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class H2oPolicy final : public OrderedPolicy {
 public:
  explicit H2oPolicy(const ProtectionOptions& protection, const LadderOptions& ladder = {})
      : OrderedPolicy(protection, ladder, 1) {}
  std::string_view name() const override { return "h2o"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<H2oPolicy>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kAttentionMass; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override { return mass_[page.index()]; }
  void on_track(const PageMeta& page, bool is_new) override;
  void on_observe(const EvidenceBatch& batch) override;
  void on_inherit(const PackedPage& page) override;

  std::vector<double> mass_;  // by page
};

}  // namespace memdecay
