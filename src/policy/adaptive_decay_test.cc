#include "policy/adaptive_decay.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

TEST(AdaptiveDecay, FollowsTheTokenRateWithinItsBounds) {
  AdaptiveDecay decay;
  EXPECT_EQ(decay.factor(), 1);
  decay.observe(20, 1);
  EXPECT_DOUBLE_EQ(decay.factor(), 1) << "the reference rate";
  for (int i = 0; i < 300; ++i) decay.observe(80, 1);
  EXPECT_NEAR(decay.factor(), 2, 1e-3) << "four times the rate, square root";
  for (int i = 0; i < 300; ++i) decay.observe(8000, 1);
  EXPECT_EQ(decay.factor(), 2);
  decay.observe(0, 3600);
  EXPECT_EQ(decay.factor(), 0.5) << "the agent waited";
}

TEST(AdaptiveDecay, NoTimeTeachesNothingAndOffIsOne) {
  AdaptiveDecay decay;
  decay.observe(1000, 0);
  decay.observe(1000, -1);
  EXPECT_EQ(decay.factor(), 1);
  decay.observe(0, 100);
  EXPECT_DOUBLE_EQ(decay.factor(), 1) << "2,000 tokens in 100 s: tokens and time may come apart";
  AdaptiveDecayOptions options;
  options.enabled = false;
  AdaptiveDecay off(options);
  off.observe(1000, 1);
  EXPECT_EQ(off.factor(), 1);
}

TEST(AdaptiveDecay, TimeBeforeTheFirstTokensSaysNothing) {
  AdaptiveDecay decay;
  decay.observe(0, 1e6);
  EXPECT_EQ(decay.factor(), 1);
  decay.observe(40, 2);
  EXPECT_DOUBLE_EQ(decay.factor(), 1);
}

}  // namespace
}  // namespace memdecay
