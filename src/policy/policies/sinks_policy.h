// SinksPolicy: the first tokens and a window (StreamingLLM: Xiao, Tian, Chen, Han, Lewis, 2023).
//
// Oldest position first, and the sinks of ProtectionOptions stay. At least one token is a sink.
// Positions stay what they were; the paper renumbers them inside the cache.
#pragma once

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class SinksPolicy final : public OrderedPolicy {
 public:
  explicit SinksPolicy(ProtectionOptions protection, const LadderOptions& ladder = {});
  std::string_view name() const override { return "sinks"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<SinksPolicy>(*this); }

 private:
  double key(TrackedPageId page, Region /*as*/) const override {
    return book().meta(page).position;
  }
};

}  // namespace memdecay
