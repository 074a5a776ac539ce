#include "policy/policies/window_policy.h"

namespace memdecay {
namespace {

ProtectionOptions without_sinks(ProtectionOptions protection) {
  protection.sink_tokens = 0;
  return protection;
}

}  // namespace

WindowPolicy::WindowPolicy(ProtectionOptions protection, const LadderOptions& ladder)
    : OrderedPolicy(without_sinks(protection), ladder, 1) {}

}  // namespace memdecay
