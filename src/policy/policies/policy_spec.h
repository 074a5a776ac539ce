// A policy and its settings in one line of text: "memdecay:beta=0.5;exact_bonus=0".
//
// What flags, evaluations and clients write. In front of ':' stands a name of make_policy.h, behind
// it settings, separated by ';', each a word of policy_setting_names(). Numbers are checked against
// the range in which they mean something. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "policy/policies/make_policy.h"

namespace memdecay {

/// The name in front of the settings.
std::string_view policy_spec_name(std::string_view spec);
/// Writes the settings of the spec into `options`. kInvalidArgument names the word that is unknown,
/// with those there are, or the value that is out of range; `options` are then of no use.
Status apply_policy_spec(std::string_view spec, PolicyOptions& options);
/// The policy that the spec names, with its settings over `options`; kNotFound for a name that
/// there is not, else the same errors.
Result<EvictionPolicyHandle> make_policy_by_spec(std::string_view spec, PolicyOptions options = {});
/// One setting by its name; the same errors.
Status apply_policy_setting(std::string_view name, std::string_view value, PolicyOptions& options);
std::vector<std::string_view> policy_setting_names();

}  // namespace memdecay
