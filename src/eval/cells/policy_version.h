// Policy version: what makes scores of a policy another's, though its name is the same: the
// settings it really has, and how this program understands them.
//
// A memdecay policy is known by all its settings; a baseline by those that make_policy.h gives it,
// protection and ladder. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "engine/memory/policy_config.h"

namespace memdecay {

/// To be raised with every change of what a policy does with the same settings.
inline constexpr int kScoresVersion = 1;

/// "" for "none", which forgets nothing. Settings behind the name count; what apply_policy_spec()
/// says of those that are wrong.
Result<std::string> policy_version(std::string_view spec, const PolicyConfig& config);

}  // namespace memdecay
