#include "eval/cells/policy_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text_hash.h"
#include "policy/policies/policy_spec.h"

namespace memdecay {
namespace {

/// What every policy has.
std::string shared_text(const MemdecayOptions& options) {
  const ProtectionOptions& protection = options.protection;
  const LadderOptions& ladder = options.ladder;
  return fmt::format("{} {} {} {} {} | {} {} {} {} {}", protection.sink_tokens,
                     protection.newest_pages, protection.lag_rounds, protection.lag_bonus,
                     protection.floor_share, form_index(ladder.lowest),
                     form_index(ladder.lowest_pinned), form_index(ladder.lowest_newest),
                     form_index(ladder.lowest_exact), ladder.exact_from_share);
}

std::string memdecay_text(const MemdecayOptions& options) {
  const EvidenceOptions& evidence = options.evidence;
  return fmt::format(
      " | {} {} {} {} | {} {} {} {} {} {} {} {} {} {}", evidence.half_life_tokens,
      fmt::join(evidence.phase_weights, ","), evidence.lasting_share, evidence.lasting_is_mean,
      fmt::join(options.initial, ","), fmt::join(options.decay, ","), options.region_weight,
      options.beta, options.exact_bonus, options.idle_decay, options.promote_rate,
      options.promote_batches, static_cast<int>(options.evidence_kind), options.rekey_threshold);
}

}  // namespace

Result<std::string> policy_version(std::string_view spec, const PolicyConfig& config) {
  const std::string_view name = policy_spec_name(spec);
  if (name == "none") return std::string();
  PolicyOptions options;
  options.memdecay.initial = config.initial;
  options.memdecay.decay = config.decay;
  MEMDECAY_RETURN_IF_ERROR(apply_policy_spec(spec, options));
  std::string text = shared_text(options.memdecay);
  if (name.starts_with("memdecay")) text += memdecay_text(options.memdecay);
  // Versions are compared under one name of a policy, so the name is no part of them.
  text += fmt::format(" {}", kScoresVersion);
  return fmt::format("{}-{:08x}", kScoresVersion, text_hash(text) & 0xFFFFFFFFU);
}

}  // namespace memdecay
