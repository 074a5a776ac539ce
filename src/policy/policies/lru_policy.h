// LruPolicy: least recently used first. Used is: born, or given more than the uniform share of a
// batch's attention mass.
#pragma once

#include <vector>

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class LruPolicy final : public OrderedPolicy {
 public:
  explicit LruPolicy(const ProtectionOptions& protection, const LadderOptions& ladder = {})
      : OrderedPolicy(protection, ladder, 1) {}
  std::string_view name() const override { return "lru"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<LruPolicy>(*this); }
  bool wants(EvidenceKind kind) const override { return kind == EvidenceKind::kAttentionMass; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    return static_cast<double>(used_step_[page.index()]);
  }
  void on_track(const PageMeta& page, bool is_new) override;
  void on_observe(const EvidenceBatch& batch) override;
  void on_inherit(const PackedPage& page) override;

  std::vector<std::int64_t> used_step_;  // by page
};

}  // namespace memdecay
