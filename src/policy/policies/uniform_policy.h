// UniformPolicy: keeps an even sample of the history.
//
// Page number n of the session (in the order of tracking) has the key -reverse(n), the bits of n
// mirrored: dropping the lowest keys leaves the n whose mirrored bits are below a bound, which lie
// evenly over the whole history at every share (van der Corput's sequence), and what is kept at a
// smaller share is a part of what is kept at a larger one.
#pragma once

#include <vector>

#include "policy/policies/ordered_policy.h"

namespace memdecay {

class UniformPolicy final : public OrderedPolicy {
 public:
  explicit UniformPolicy(const ProtectionOptions& protection, const LadderOptions& ladder = {})
      : OrderedPolicy(protection, ladder, 1) {}
  std::string_view name() const override { return "uniform"; }
  EvictionPolicyHandle clone() const override { return std::make_unique<UniformPolicy>(*this); }

 private:
  double key(TrackedPageId page, Region as) const override;
  void on_track(const PageMeta& page, bool is_new) override;

  std::uint32_t tracked_ = 0;
  std::vector<std::uint32_t> mirrored_;  // by page
};

}  // namespace memdecay
