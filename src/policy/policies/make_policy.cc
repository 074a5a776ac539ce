#include "policy/policies/make_policy.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "policy/policies/classic_policy.h"
#include "policy/policies/h2o_policy.h"
#include "policy/policies/keydiff_policy.h"
#include "policy/policies/lru_policy.h"
#include "policy/policies/protected_prefix.h"
#include "policy/policies/random_policy.h"
#include "policy/policies/recompute_policy.h"
#include "policy/policies/sinks_policy.h"
#include "policy/policies/tova_policy.h"
#include "policy/policies/uniform_policy.h"
#include "policy/policies/window_policy.h"

namespace memdecay {
namespace {

constexpr std::array<std::string_view, 11> kNames = {
    "memdecay", "memdecay-classic", "window", "sinks", "uniform", "recompute", "h2o",
    "tova",     "keydiff",          "lru",    "random"};

EvictionPolicyHandle make_named(std::string_view name, const PolicyOptions& options) {
  if (name == "memdecay") return std::make_unique<MemdecayPolicy>(options.memdecay);
  ProtectionOptions protection = options.memdecay.protection;
  if (!options.baseline_lag) protection.lag_rounds = 0;
  // Their scores have other units than memdecay's bonus.
  protection.lag_bonus = std::numeric_limits<double>::infinity();
  if (!options.baseline_floors) protection.floor_share = 0;
  const LadderOptions& ladder = options.memdecay.ladder;
  if (name == "memdecay-classic") {
    return std::make_unique<ClassicPolicy>(
        ClassicOptions{protection, ladder, options.memdecay.initial, options.memdecay.decay});
  }
  if (name == "window") return std::make_unique<WindowPolicy>(protection, ladder);
  if (name == "sinks") return std::make_unique<SinksPolicy>(protection, ladder);
  if (name == "uniform") return std::make_unique<UniformPolicy>(protection, ladder);
  if (name == "recompute") return std::make_unique<RecomputePolicy>(protection);
  if (name == "h2o") return std::make_unique<H2oPolicy>(protection, ladder);
  if (name == "tova") return std::make_unique<TovaPolicy>(protection, ladder);
  if (name == "keydiff") return std::make_unique<KeydiffPolicy>(protection, ladder);
  if (name == "lru") return std::make_unique<LruPolicy>(protection, ladder);
  if (name == "random") {
    return std::make_unique<RandomPolicy>(protection, options.random_seed, ladder);
  }
  return nullptr;
}

}  // namespace

std::span<const std::string_view> policy_names() {
  return kNames;
}

Result<EvictionPolicyHandle> make_policy(std::string_view name, const PolicyOptions& options) {
  EvictionPolicyHandle policy = make_named(name, options);
  if (policy == nullptr) {
    return make_status(StatusCode::kNotFound, "there is no policy \"{}\"; there are {}", name,
                       fmt::join(kNames, ", "));
  }
  if (!options.protect_prefix) return policy;
  return EvictionPolicyHandle(
      std::make_unique<ProtectedPrefix>(std::move(policy), options.prefix_tokens));
}

}  // namespace memdecay
