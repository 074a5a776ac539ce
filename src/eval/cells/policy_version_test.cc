#include "eval/cells/policy_version.h"

#include <gtest/gtest.h>

#include <set>

#include "policy/policies/policy_spec.h"

namespace memdecay {
namespace {

/// Values that are no one's default all at once; each setting takes at least two of them.
constexpr std::string_view kValues[] = {"0.25", "1",   "2",    "fp16", "int8",
                                        "int4", "sum", "mean", "mass", "error"};

/// The versions of a policy with one setting at each of the values that it takes.
struct Versions {
  int values = 0;
  std::set<std::string> versions;
};

Versions versions_of(std::string_view policy, std::string_view setting) {
  Versions found;
  for (const std::string_view value : kValues) {
    const auto version =
        policy_version(fmt::format("{}:{}={}", policy, setting, value), PolicyConfig());
    if (!version.ok()) continue;
    ++found.values;
    found.versions.insert(*version);
  }
  return found;
}

TEST(PolicyVersion, EverySettingOfMemdecayMakesAnother) {
  for (const std::string_view policy : {"memdecay", "memdecay-classic"}) {
    for (const std::string_view setting : policy_setting_names()) {
      const Versions found = versions_of(policy, setting);
      EXPECT_GE(found.values, 2) << setting;
      EXPECT_EQ(found.versions.size(), static_cast<std::size_t>(found.values)) << setting;
    }
    PolicyConfig other;
    other.decay[0] += 0.5;
    EXPECT_NE(policy_version(policy, other).value(),
              policy_version(policy, PolicyConfig()).value());
  }
}

TEST(PolicyVersion, BaselinesAreKnownByProtectionAndLadder) {
  const std::set<std::string_view> theirs = {"lag_rounds",    "lag_bonus",    "floor_share",
                                             "newest_pages",  "lowest",       "lowest_pinned",
                                             "lowest_newest", "lowest_exact", "exact_from_share"};
  for (const std::string_view setting : policy_setting_names()) {
    const Versions found = versions_of("window", setting);
    EXPECT_EQ(found.versions.size(),
              theirs.contains(setting) ? static_cast<std::size_t>(found.values) : 1U)
        << setting;
  }
  PolicyConfig other;
  other.decay[0] += 0.5;
  EXPECT_EQ(policy_version("window", other).value(),
            policy_version("window", PolicyConfig()).value());
}

TEST(PolicyVersion, WhatEvictsHasOne) {
  EXPECT_EQ(policy_version("none", PolicyConfig()).value(), "");
  EXPECT_NE(policy_version("oracle", PolicyConfig()).value(), "");
  for (const std::string_view policy : policy_names())
    EXPECT_NE(policy_version(policy, PolicyConfig()).value(), "") << policy;
}

}  // namespace
}  // namespace memdecay
