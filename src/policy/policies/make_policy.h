// make_policy: a policy by the name that flags and clients use. Pure, any thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/status.h"
#include "policy/eviction_policy.h"
#include "policy/policies/memdecay_policy.h"

namespace memdecay {

struct PolicyOptions {
  /// Protection, ladder, scores and decay of all policies that have them. Baselines take sinks,
  /// newest pages, floors and the pin cap from it; only memdecay has a lag unless it is asked for
  /// with `baseline_lag`.
  MemdecayOptions memdecay = {};
  bool baseline_lag = false;
  bool baseline_floors = false;
  bool protect_prefix = false;
  Position prefix_tokens = 0;  ///< with protect_prefix: what to protect beside system text
  std::uint64_t random_seed = 1;
};

std::span<const std::string_view> policy_names();
/// kNotFound, with the names there are, for another name.
Result<EvictionPolicyHandle> make_policy(std::string_view name, const PolicyOptions& options = {});

}  // namespace memdecay
