#include "policy/policies/classic_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "policy/policy_for_test.h"

namespace memdecay {
namespace {

PageMeta page(int id, Region region, std::int64_t born) {
  return page_for_test(id, region, born, 10, 100);
}

// The worked example. Survival 4000, 2000, 1000, 300 steps; threshold 0.1:
//   lambda_decision = ln(10 / 0.1) / 4000 = 4.605170 / 4000 = 0.001151293
//   lambda_tool     = ln( 5 / 0.1) / 2000 = 3.912023 / 2000 = 0.001956012
//   lambda_recent   = ln( 2 / 0.1) / 1000 = 2.995732 / 1000 = 0.002995732
//   lambda_ordinary = ln( 1 / 0.1) /  300 = 2.302585 /  300 = 0.007675284
// Pages 0 system, 1 decision, 2 tool, 3 recent, 4 ordinary, born at step 0, all 10 tokens.
// Two batches of attention mass; the uniform share of each page is 1/5 = 0.2:
//   {0.1, 0.11, 0.5, 0.1, 0.19}  only page 2 is above
//   {0.0, 0.0, 0.4, 0.3, 0.3}  pages 2, 3, 4 are above
// so accesses are 0, 0, 2, 1, 1. At step 500:
//   S0 = 100
//   S1 = 10 * exp(-0.575646)             = 10 * 0.562341             = 5.623413
//   S2 =  5 * exp(-0.978006) * (1 + 0.1 ln 3) = 5 * 0.376060 * 1.109861 = 2.086874
//   S3 =  2 * exp(-1.497866) * (1 + 0.1 ln 2) = 2 * 0.223607 * 1.069315 = 0.478212
//   S4 =  1 * exp(-3.837642) * (1 + 0.1 ln 2) =     0.021544 * 1.069315 = 0.023038
class WorkedExample : public testing::Test {
 protected:
  WorkedExample() : policy_(options()) {
    for (int i = 0; i < 5; ++i) policy_.track(page(i, kRegions[static_cast<std::size_t>(i)], 0));
    observe({0.1F, 0.11F, 0.5F, 0.1F, 0.19F});
    observe({0.0F, 0.0F, 0.4F, 0.3F, 0.3F});
    policy_.advance({500, 0});
  }
  static ClassicOptions options() {
    ClassicOptions options;
    options.decay = short_region_decay();
    options.protection.sink_tokens = 0;
    options.protection.newest_pages = 0;
    return options;
  }
  void observe(const std::vector<float>& masses) {
    std::vector<PageEvidence> pages;
    for (std::size_t i = 0; i < masses.size(); ++i) {
      pages.push_back({TrackedPageId(static_cast<int>(i)), masses[i]});
    }
    policy_.observe({EvidenceKind::kAttentionMass, QueryPhase::kAct, pages});
  }
  std::vector<int> drops(std::uint64_t budget) {
    std::vector<int> dropped;
    for (const PlanAction& action : policy_.plan({budget, Urgency::kPressed, 0.01}).actions) {
      dropped.push_back(action.page.value());
    }
    return dropped;
  }
  ClassicPolicy policy_;
};

TEST_F(WorkedExample, ScoresAreTheFormulas) {
  const double expected[] = {100, 5.623413, 2.086874, 0.478212, 0.023038};
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(policy_.classic_score_of(TrackedPageId(i)), expected[i], 1.1e-6) << i;
    EXPECT_NEAR(std::exp(policy_.explain(TrackedPageId(i)).score), expected[i], 1.1e-6) << i;
  }
}

TEST_F(WorkedExample, EvictionsGoLowestFirstUntilTheBudgetHolds) {
  EXPECT_EQ(drops(500), std::vector<int>{});
  EXPECT_EQ(drops(499), (std::vector<int>{4}));
  EXPECT_EQ(drops(300), (std::vector<int>{4, 3}));
  EXPECT_EQ(drops(101), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(drops(0), (std::vector<int>{4, 3, 2, 1, 0})) << "nothing is pinned here";
}

TEST_F(WorkedExample, AgeTurnsTheOrderOfRegions) {
  // A fresh ordinary page (S = 1 at birth, step 500) beats the old dialogue (0.478) and loses to
  // the tool page (2.087).
  policy_.track(page(5, Region::kOrdinary, 500));
  EXPECT_EQ(drops(300), (std::vector<int>{4, 3, 5}));
  // 200 steps later: page 5 is 1 * exp(-1.535057) = 0.215443, page 3 is
  // 2 * exp(-2.097013) * 1.069315 = 0.262672: the order of the two has turned.
  policy_.advance({700, 0});
  EXPECT_NEAR(policy_.classic_score_of(TrackedPageId(5)), 0.215443, 1e-6);
  EXPECT_NEAR(policy_.classic_score_of(TrackedPageId(3)), 0.262672, 1e-6);
  EXPECT_EQ(drops(300), (std::vector<int>{4, 5, 3}));
}

TEST_F(WorkedExample, GentlePlansTakeOnlyWhatIsFarBelowTheThreshold) {
  EXPECT_TRUE(policy_.plan({0, Urgency::kGentle, 0.01}).actions.empty());
  policy_.advance({700, 0});  // S4 = exp(-5.372699) * 1.069315 = 0.004964
  const EvictionPlan plan = policy_.plan({0, Urgency::kGentle, 0.01});
  ASSERT_EQ(plan.actions.size(), 1U);
  EXPECT_EQ(plan.actions[0].page, TrackedPageId(4));
  EXPECT_EQ(plan.missing_bytes, 400U);
}

TEST_F(WorkedExample, AMillionStepsUnderflowNothing) {
  policy_.advance({1'000'000'000, 0});
  policy_.track(page(6, Region::kOrdinary, 999'999'999));
  policy_.track(page(7, Region::kOrdinary, 1'000'000'000));
  // S of all old pages is 0 in double precision; their order still is by logarithm.
  EXPECT_EQ(policy_.classic_score_of(TrackedPageId(4)), 0);
  EXPECT_EQ(drops(0), (std::vector<int>{4, 3, 2, 1, 6, 7, 0}));
}

}  // namespace
}  // namespace memdecay
