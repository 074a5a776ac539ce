// PolicyConfig: how fast regions are forgotten, as a file says (docs/formats/policy_config.md).
//
// `memdecay calibrate decay` writes such files, people edit them, --policy-config takes them. What
// a file does not say stays as it is by default. Anything it says that is not understood is an
// error: a typo must not look like a setting.
// Pure but for read_policy_config(); any thread. Cost: O(bytes).
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/status.h"
#include "policy/policies/memdecay_policy.h"

namespace memdecay {

struct PolicyConfig {
  std::array<double, kRegionCount> initial = kInitialScores;        ///< > 0
  std::array<double, kRegionCount> decay = default_region_decay();  ///< per token, >= 0
};

/// kInvalidArgument says in one sentence what is wrong and where.
Result<PolicyConfig> parse_policy_config(std::string_view text);
/// kNotFound or kIoError for the file, else as above with its name in front.
Result<PolicyConfig> read_policy_config(const std::string& path);

}  // namespace memdecay
