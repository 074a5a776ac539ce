#include "policy/decay_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace memdecay {
namespace {

TEST(DecayMath, SurvivalAndDecayAreInverse) {
  // ln(10 / 0.1) / 4000 = 4.60517... / 4000
  EXPECT_NEAR(decay_for_survival(10, 4000), 0.00115129254649702, 1e-15);
  for (const double initial : {100.0, 10.0, 5.0, 2.0, 1.0}) {
    for (const double steps : {1.0, 300.0, 1e6}) {
      EXPECT_NEAR(survival_for_decay(initial, decay_for_survival(initial, steps)), steps,
                  1e-9 * steps);
    }
  }
  EXPECT_TRUE(std::isinf(survival_for_decay(100, 0)));
  EXPECT_EQ(decay_for_survival(100, std::numeric_limits<double>::infinity()), 0);
  EXPECT_NEAR(survival_for_decay(8, std::log(2), 1), 3, 1e-12);
}

TEST(DecayMath, ClassicScoreAtItsCorners) {
  EXPECT_EQ(classic_score(100, 0, 1e9, 0), 100);
  // At the end of its survival a score without accesses is the threshold.
  EXPECT_NEAR(classic_score(2, decay_for_survival(2, 1000), 1000, 0), 0.1, 1e-12);
  // e - 1 is no whole number of accesses: ln(1 + 9) = 2.302585.
  EXPECT_NEAR(classic_score(1, 0, 0, 9), 1.2302585092994, 1e-12);
}

}  // namespace
}  // namespace memdecay
