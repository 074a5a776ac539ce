// RandomPolicy: pages in the order of a random number each, drawn when a page is tracked;
// equal seeds give equal runs on every machine.
#pragma once

#include <vector>

#include "core/seeded_random.h"
#include "policy/policies/ordered_policy.h"

namespace memdecay {

class RandomPolicy final : public OrderedPolicy {
 public:
  RandomPolicy(const ProtectionOptions& protection, std::uint64_t seed,
               const LadderOptions& ladder = {})
      : OrderedPolicy(protection, ladder, 1), random_(seed) {}
  std::string_view name() const override { return "random"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<RandomPolicy>(*this); }

 private:
  double key(TrackedPageId page, Region /*as*/) const override { return drawn_[page.index()]; }
  void on_track(const PageMeta& page, bool is_new) override;

  SeededRandom random_;
  std::vector<double> drawn_;  // by page, in [0, 1)
};

}  // namespace memdecay
