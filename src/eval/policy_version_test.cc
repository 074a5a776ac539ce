#include "eval/policy_version.h"

#include <gtest/gtest.h>

#include <set>

namespace memdecay {
namespace {

TEST(PolicyVersion, EverySettingOfMemdecayMakesAnother) {
  const PolicyConfig config;
  std::set<std::string> versions;
  for (const char* policy : {"memdecay", "memdecay:beta=3", "memdecay:lag_bonus=1",
                             "memdecay:lowest=int8", "memdecay:half_life_tokens=5"})
    EXPECT_TRUE(versions.insert(policy_version(policy, config).value()).second) << policy;
  PolicyConfig other;
  other.decay[0] += 0.5;
  EXPECT_TRUE(versions.insert(policy_version("memdecay", other).value()).second);
  EXPECT_EQ(policy_version("memdecay", config).value(), policy_version("memdecay", config).value());
}

TEST(PolicyVersion, BaselinesHaveNone) {
  for (const char* policy : {"none", "oracle", "lru", "window"})
    EXPECT_EQ(policy_version(policy, PolicyConfig()).value(), "") << policy;
}

}  // namespace
}  // namespace memdecay
