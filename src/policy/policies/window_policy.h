// WindowPolicy: the sliding window. Oldest position first; without sinks unless asked for.
#pragma once

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class WindowPolicy final : public OrderedPolicy {
 public:
  /// Sinks in `protection` are not kept: that is SinksPolicy.
  explicit WindowPolicy(ProtectionOptions protection, const LadderOptions& ladder = {});
  std::string_view name() const override { return "window"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<WindowPolicy>(*this); }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    return book().meta(page).position;
  }
};

}  // namespace memdecay
