// Policy version: what makes scores of a memdecay policy another policy's, though its name is the
// same: the settings it really has, and how this program understands them.
//
// Baselines are what their papers say and have none. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "engine/memory/policy_config.h"

namespace memdecay {

/// To be raised with every change of what a memdecay policy does with the same settings.
inline constexpr int kScoresVersion = 1;

/// "" for a policy without one. Settings behind the name count; what apply_policy_spec() says of
/// those that are wrong.
Result<std::string> policy_version(std::string_view spec, const PolicyConfig& config);

}  // namespace memdecay
