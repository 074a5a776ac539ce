// RecomputePolicy: drops all that may go as soon as the budget is passed; what is needed is
// computed again. Demotes nothing.
#pragma once

#include "policy/ordered_policy.h"

namespace memdecay {

class RecomputePolicy final : public OrderedPolicy {
 public:
  explicit RecomputePolicy(const ProtectionOptions& protection)
      : OrderedPolicy(protection, {}, 1) {}
  std::string_view name() const override { return "recompute"; }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    return book().meta(page).position;
  }
  bool drops_all() const override { return true; }
};

}  // namespace memdecay
