#include "policy/policies/policy_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>

namespace memdecay {
namespace {

struct NumberSetting {
  std::string_view name;
  double lowest, highest;
  std::function<void(MemdecayOptions&, double)> set;
};

/// A setting that is one of a few words.
struct WordSetting {
  std::string_view name;
  std::vector<std::string_view> words;
  std::function<void(MemdecayOptions&, std::size_t word)> set;
};

/// The assistant's steps (think, act) against all others.
void set_assistant_weight(MemdecayOptions& options, double weight) {
  options.evidence.phase_weights = {weight, weight, 1, 1};
}

const std::vector<NumberSetting>& number_settings() {
  using Options = MemdecayOptions;
  constexpr double kMost = 1e9;
  static const std::vector<NumberSetting> settings = {
      {"beta", 0, 100, [](Options& o, double v) { o.beta = v; }},
      {"exact_bonus", 0, 100, [](Options& o, double v) { o.exact_bonus = v; }},
      {"region_weight", 0, 10, [](Options& o, double v) { o.region_weight = v; }},
      {"decay_scale", 0, 1000,
       [](Options& o, double v) {
         for (double& decay : o.decay) decay *= v;
       }},
      {"idle_decay", 0, 100, [](Options& o, double v) { o.idle_decay = v; }},
      {"promote_rate", 1e-6, 2, [](Options& o, double v) { o.promote_rate = v; }},
      {"assistant_weight", 1e-6, kMost, set_assistant_weight},
      {"half_life_tokens", 1, kMost, [](Options& o, double v) { o.evidence.half_life_tokens = v; }},
      {"lasting_share", 0, 1, [](Options& o, double v) { o.evidence.lasting_share = v; }},
      {"lag_rounds", 0, 1000,
       [](Options& o, double v) { o.protection.lag_rounds = static_cast<std::int32_t>(v); }},
      {"lag_bonus", 0, 100, [](Options& o, double v) { o.protection.lag_bonus = v; }},
      {"floor_share", 0, 1, [](Options& o, double v) { o.protection.floor_share = v; }},
      {"newest_pages", 1, 1000,
       [](Options& o, double v) { o.protection.newest_pages = static_cast<std::int32_t>(v); }},
      {"exact_from_share", 0, 2,
       [](Options& o, double v) { o.ladder.exact_from_share = static_cast<float>(v); }},
  };
  return settings;
}

WordSetting form_setting(std::string_view name, PageForm LadderOptions::*form) {
  WordSetting setting{name, {}, {}};
  for (std::size_t i = 0; i < kPageFormCount; ++i)
    setting.words.emplace_back(page_form_name(static_cast<PageForm>(i)));
  setting.set = [form](MemdecayOptions& options, std::size_t word) {
    options.ladder.*form = static_cast<PageForm>(word);
  };
  return setting;
}

const std::vector<WordSetting>& word_settings() {
  static const std::vector<WordSetting> settings = {
      form_setting("lowest", &LadderOptions::lowest),
      form_setting("lowest_pinned", &LadderOptions::lowest_pinned),
      form_setting("lowest_newest", &LadderOptions::lowest_newest),
      form_setting("lowest_exact", &LadderOptions::lowest_exact),
      {"lasting",
       {"sum", "mean"},
       [](MemdecayOptions& options, std::size_t word) {
         options.evidence.lasting_is_mean = word == 1;
       }},
      {"evidence",
       {"mass", "error"},
       [](MemdecayOptions& options, std::size_t word) {
         options.evidence_kind =
             word == 0 ? EvidenceKind::kAttentionMass : EvidenceKind::kDeletionError;
       }},
  };
  return settings;
}

Status apply_number(const NumberSetting& setting, std::string_view value, PolicyOptions& options) {
  double number = 0;
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  const bool in_range = number >= setting.lowest && number <= setting.highest;
  if (parsed.ec != std::errc() || parsed.ptr != end || !in_range) {
    return make_status(StatusCode::kInvalidArgument,
                       "the policy's {} is a number from {} to {}, not \"{}\"", setting.name,
                       setting.lowest, setting.highest, value);
  }
  setting.set(options.memdecay, number);
  return Status();
}

Status apply_word(const WordSetting& setting, std::string_view value, PolicyOptions& options) {
  const auto word = std::find(setting.words.begin(), setting.words.end(), value);
  if (word == setting.words.end()) {
    return make_status(StatusCode::kInvalidArgument, "the policy's {} is one of {}, not \"{}\"",
                       setting.name, fmt::join(setting.words, ", "), value);
  }
  setting.set(options.memdecay, static_cast<std::size_t>(word - setting.words.begin()));
  return Status();
}

}  // namespace

std::vector<std::string_view> policy_setting_names() {
  std::vector<std::string_view> names;
  for (const NumberSetting& setting : number_settings()) names.push_back(setting.name);
  for (const WordSetting& setting : word_settings()) names.push_back(setting.name);
  return names;
}

std::string_view policy_spec_name(std::string_view spec) {
  return spec.substr(0, spec.find(':'));
}

Status apply_policy_setting(std::string_view name, std::string_view value, PolicyOptions& options) {
  for (const NumberSetting& setting : number_settings())
    if (setting.name == name) return apply_number(setting, value, options);
  for (const WordSetting& setting : word_settings())
    if (setting.name == name) return apply_word(setting, value, options);
  return make_status(StatusCode::kInvalidArgument, "a policy has no setting \"{}\"; there are {}",
                     name, fmt::join(policy_setting_names(), ", "));
}

Status apply_policy_spec(std::string_view spec, PolicyOptions& options) {
  std::string_view rest = spec.substr(policy_spec_name(spec).size());
  while (!rest.empty()) {
    rest.remove_prefix(1);  // ':' or ';'
    const std::string_view setting = rest.substr(0, rest.find(';'));
    rest.remove_prefix(setting.size());
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos) {
      return make_status(StatusCode::kInvalidArgument,
                         "\"{}\" in the policy \"{}\" is no setting: write NAME=VALUE", setting,
                         spec);
    }
    MEMDECAY_RETURN_IF_ERROR(
        apply_policy_setting(setting.substr(0, equals), setting.substr(equals + 1), options));
  }
  return Status();
}

Result<EvictionPolicyHandle> make_policy_by_spec(std::string_view spec, PolicyOptions options) {
  MEMDECAY_RETURN_IF_ERROR(apply_policy_spec(spec, options));
  return make_policy(policy_spec_name(spec), options);
}

}  // namespace memdecay
