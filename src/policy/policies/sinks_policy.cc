#include "policy/policies/sinks_policy.h"

#include <algorithm>

namespace memdecay {
namespace {

ProtectionOptions with_sinks(ProtectionOptions protection) {
  protection.sink_tokens = std::max(protection.sink_tokens, 1);
  return protection;
}

}  // namespace

SinksPolicy::SinksPolicy(ProtectionOptions protection, const LadderOptions& ladder)
    : OrderedPolicy(with_sinks(protection), ladder, 1) {}

}  // namespace memdecay
