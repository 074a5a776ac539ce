// KeydiffPolicy: the page whose keys are most like the mean key goes first (KeyDiff: Park, Jones,
// Morse, Goel, Lee, Lott, 2025). The similarity is given as evidence; the latest value counts, and
// a page without one counts as unlike all others.
#pragma once

#include <vector>

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class KeydiffPolicy final : public OrderedPolicy {
 public:
  explicit KeydiffPolicy(const ProtectionOptions& protection, const LadderOptions& ladder = {})
      : OrderedPolicy(protection, ladder, 1) {}
  std::string_view name() const override { return "keydiff"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<KeydiffPolicy>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kKeySimilarity; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    return -similarity_[page.index()];
  }
  void on_track(const PageMeta& page, bool is_new) override;
  void on_observe(const EvidenceBatch& batch) override;
  void on_inherit(const PackedPage& page) override;

  std::vector<double> similarity_;  // by page
};

}  // namespace memdecay
