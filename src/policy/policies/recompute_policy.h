// RecomputePolicy: drops all that may go as soon as the budget is passed, and asks for what fits to
// be computed again when the next turn begins. Demotes nothing.
#pragma once

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class RecomputePolicy final : public OrderedPolicy {
 public:
  explicit RecomputePolicy(const ProtectionOptions& protection)
      : OrderedPolicy(protection, {}, 1) {}
  std::string_view name() const override { return "recompute"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<RecomputePolicy>(*this); }
  bool recomputes() const override { return true; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    return book().meta(page).position;
  }
  bool drops_all() const override { return true; }
};

}  // namespace memdecay
