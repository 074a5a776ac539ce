// TovaPolicy: the page that the latest query looks at least goes first (TOVA: Oren, Hassid, Yarden,
// Adi, Schwartz, 2024). A page that no query has met yet counts as looked at fully.
#pragma once

#include <vector>

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class TovaPolicy final : public OrderedPolicy {
 public:
  explicit TovaPolicy(const ProtectionOptions& protection, const LadderOptions& ladder = {})
      : OrderedPolicy(protection, ladder, 1) {}
  std::string_view name() const override { return "tova"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<TovaPolicy>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kLastQueryMass; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override { return last_[page.index()]; }
  void on_track(const PageMeta& page, bool is_new) override;
  void on_observe(const EvidenceBatch& batch) override;
  void on_inherit(const PackedPage& page) override;

  std::vector<double> last_;  // by page
};

}  // namespace memdecay
