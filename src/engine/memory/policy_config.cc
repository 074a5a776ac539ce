#include "engine/memory/policy_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "policy/decay_math.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::array<std::string_view, 6> kMembers = {"threshold",   "wished_share", "quiet_steps",
                                                      "looks_above", "measured_on",  "regions"};
constexpr std::array<std::string_view, 6> kRegionMembers = {"initial", "decay", "survival_steps",
                                                            "items",   "ended", "fits"};

template <std::size_t n>
Status check_members(const Json& object, const std::array<std::string_view, n>& known,
                     std::string_view where) {
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return make_status(StatusCode::kInvalidArgument, "{} has no member \"{}\"; there are {}", where,
                       name, fmt::join(known, ", "));
  }
  return Status();
}

/// The member as a number from `least` on; nothing where it is missing or null.
Result<std::optional<double>> number(const Json& object, const char* name, double least,
                                     std::string_view where) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return std::optional<double>();
  const double value = found->is_number() ? found->get<double>() : NAN;
  if (std::isfinite(value) && value >= least) return std::optional(value);
  return make_status(StatusCode::kInvalidArgument, "{}.{} is no number from {:g} on", where, name,
                     least);
}

Status read_region(const Json& json, Region region, double threshold, PolicyConfig& config) {
  const std::size_t r = region_index(region);
  const std::string where = fmt::format("regions.{}", region_name(region));
  if (!json.is_object()) return make_status(StatusCode::kInvalidArgument, "{} is no object", where);
  MEMDECAY_RETURN_IF_ERROR(check_members(json, kRegionMembers, where));
  MEMDECAY_ASSIGN_OR_RETURN(const auto initial, number(json, "initial", 1e-6, where));
  MEMDECAY_ASSIGN_OR_RETURN(const auto decay, number(json, "decay", 0, where));
  MEMDECAY_ASSIGN_OR_RETURN(const auto steps, number(json, "survival_steps", 1, where));
  config.initial[r] = initial.value_or(config.initial[r]);
  if (decay.has_value()) {
    config.decay[r] = *decay;
  } else if (steps.has_value()) {
    if (config.initial[r] <= threshold) {
      return make_status(
          StatusCode::kInvalidArgument,
          "{} cannot survive: its initial score {:g} is not above the threshold {:g}", where,
          config.initial[r], threshold);
    }
    config.decay[r] = decay_for_survival(config.initial[r], *steps, threshold);
  } else if (json.contains("survival_steps")) {
    config.decay[r] = 0;  // null: it survives everything
  }
  return Status();
}

}  // namespace

Result<PolicyConfig> parse_policy_config(std::string_view text) {
  if (text.size() > kMostBytes)
    return Status(StatusCode::kInvalidArgument, "a policy's config is never longer than 1 MiB");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return Status(StatusCode::kInvalidArgument, "this is no JSON object, as a policy's config is");
  MEMDECAY_RETURN_IF_ERROR(check_members(json, kMembers, "the config"));
  MEMDECAY_ASSIGN_OR_RETURN(const auto threshold, number(json, "threshold", 1e-9, "the config"));
  const auto regions = json.find("regions");
  if (regions == json.end() || !regions->is_object() || regions->empty())
    return Status(StatusCode::kInvalidArgument, "the config names no regions");
  PolicyConfig config;
  for (const auto& [name, region] : regions->items()) {
    const auto found = std::find(kRegionNames.begin(), kRegionNames.end(), name);
    if (found == kRegionNames.end()) {
      return make_status(StatusCode::kInvalidArgument, "there is no region \"{}\"; there are {}",
                         name, fmt::join(kRegionNames, ", "));
    }
    const auto index = static_cast<std::size_t>(found - kRegionNames.begin());
    MEMDECAY_RETURN_IF_ERROR(
        read_region(region, kRegions[index], threshold.value_or(kDecayThreshold), config));
  }
  return config;
}

Result<PolicyConfig> read_policy_config(const std::string& path) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  Result<PolicyConfig> config = parse_policy_config(text);
  if (!config.ok()) return config.status().with_context(path);
  return config;
}

}  // namespace memdecay
