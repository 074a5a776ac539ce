#include "eval/speed.h"

#include <gtest/gtest.h>

#include <cmath>

namespace memdecay {
namespace {

TEST(SpeedTest, MedianIsTheMiddleOrTheMeanOfBoth) {
  EXPECT_EQ(median({7.0}), 7.0);
  EXPECT_EQ(median({9.0, 1.0, 5.0}), 5.0);
  EXPECT_EQ(median({4.0, 1.0, 100.0, 2.0}), 3.0);
}

TEST(SpeedTest, SummaryIsMeanAndSampleDeviation) {
  EXPECT_EQ(summarize_speed({5.0}).mean, 5.0);
  EXPECT_EQ(summarize_speed({5.0}).deviation, 0.0);
  const SpeedSummary summary = summarize_speed({2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0});
  EXPECT_EQ(summary.mean, 5.0);
  EXPECT_NEAR(summary.deviation, std::sqrt(32.0 / 7.0), 1e-12);
}

}  // namespace
}  // namespace memdecay
