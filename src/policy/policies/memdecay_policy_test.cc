#include "policy/policies/memdecay_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "policy/decay_math.h"
#include "policy/policy_for_test.h"

namespace memdecay {
namespace {

PageMeta page(int id, Region region, std::int64_t born = 0) {
  return page_for_test(id, region, born, 32, 1000);
}

MemdecayOptions plain() {
  MemdecayOptions options;
  options.decay = short_region_decay();
  options.region_weight = options.beta = 1;
  options.exact_bonus = 2;
  options.idle_decay = 0;
  options.promote_rate = 2;
  options.protection = {.sink_tokens = 0, .newest_pages = 0};
  options.rekey_threshold = 0;
  options.adaptive.enabled = false;
  return options;
}

std::vector<int> drops(const EvictionPolicy& policy, std::uint64_t budget,
                       Urgency urgency = Urgency::kPressed) {
  std::vector<int> pages;
  for (const PlanAction& action : policy.plan({budget, urgency, 0.01}).actions) {
    if (action.drop) pages.push_back(action.page.value());
  }
  return pages;
}

void observe(EvictionPolicy& policy, const std::vector<std::pair<int, float>>& values,
             QueryPhase phase = QueryPhase::kAct,
             EvidenceKind kind = EvidenceKind::kDeletionError) {
  std::vector<PageEvidence> pages;
  for (const auto& [id, value] : values) pages.push_back({TrackedPageId(id), value});
  policy.observe({kind, phase, pages});
}

TEST(MemdecayPolicy, WithoutEvidenceItIsTheClassicScore) {
  MemdecayPolicy policy(plain());
  for (int i = 0; i < 5; ++i) policy.track(page(i, kRegions[static_cast<std::size_t>(i)]));
  policy.advance({500, 0});
  for (int i = 0; i < 5; ++i) {
    const auto r = static_cast<std::size_t>(i);
    const double classic = classic_score(kInitialScores[r], short_region_decay()[r], 500, 0);
    EXPECT_NEAR(policy.explain(TrackedPageId(i)).score, std::log(classic), 1e-12);
  }
}

TEST(MemdecayPolicy, EvidenceOfTheAssistantCountsFourfold) {
  MemdecayPolicy policy(plain());
  policy.track(page(0, Region::kRecent));
  policy.track(page(1, Region::kRecent));
  observe(policy, {{0, 0.5F}, {1, 0.1F}}, QueryPhase::kAct);
  observe(policy, {{0, 0.1F}, {1, 0.5F}}, QueryPhase::kTool);
  EXPECT_EQ(drops(policy, 1000), (std::vector<int>{1}));
  // Page 0: average (4 * 0.5 + 0.1) / 5 = 0.42, lasting 2.1. Page 1: (4 * 0.1 + 0.5) / 5 = 0.18,
  // lasting 0.9. Mean page: 0.3 and 1.5. Level of 0 against the mean: ln 1.4 on both clocks.
  EXPECT_NEAR(policy.explain(TrackedPageId(0)).score, std::log(2.0) + std::log(1.4), 1e-6);
  EXPECT_NEAR(policy.explain(TrackedPageId(1)).score, std::log(2.0) + std::log(0.6), 1e-6);
}

TEST(MemdecayPolicy, TheTwoClocksDisagreeAndTheirMixDecides) {
  for (const double lasting : {0.0, 1.0}) {
    MemdecayOptions options = plain();
    options.evidence.lasting_share = lasting;
    options.decay = {};
    MemdecayPolicy policy(options);
    policy.track(page(0, Region::kRecent));
    policy.track(page(1, Region::kRecent));
    for (int i = 0; i < 10; ++i) observe(policy, {{0, 0.9F}, {1, 0.1F}});
    policy.advance({10 * 1024, 0});
    observe(policy, {{0, 0.1F}, {1, 0.2F}});  // long ago 0 mattered, now 1 does
    EXPECT_EQ(drops(policy, 1000), (std::vector<int>{lasting == 0 ? 0 : 1}));
  }
}

TEST(MemdecayPolicy, ExactValuesStayLongerThanTheirLike) {
  MemdecayPolicy policy(plain());
  PageMeta rich = page(0, Region::kOrdinary);
  rich.exact_share = 0.5F;
  policy.track(rich);
  policy.track(page(1, Region::kOrdinary));
  policy.track(page(2, Region::kOrdinary));
  EXPECT_EQ(drops(policy, 1000), (std::vector<int>{1, 2}));
}

TEST(MemdecayPolicy, TimeReordersRegionsButNeverARegion) {
  MemdecayOptions options = plain();
  options.adaptive.enabled = true;
  MemdecayPolicy policy(options);
  for (int i = 0; i < 20; ++i) {
    policy.track(page(i, Region::kRecent, 10 * i));
    policy.advance({10 * (i + 1), i % 2 == 0 ? 0.01 * i : 5.0 * i});  // bursts and waits
  }
  const auto before = drops(policy, 0);
  policy.advance({100000, 1e6});
  EXPECT_EQ(drops(policy, 0), before);
}

TEST(MemdecayPolicy, DialogueDecaysFasterWhenTokensComeFast) {
  const auto score_after = [](double seconds) {
    MemdecayOptions options = plain();
    options.adaptive.enabled = true;
    MemdecayPolicy policy(options);
    policy.track(page(0, Region::kRecent));
    policy.track(page(1, Region::kTool));
    policy.advance({1000, seconds});
    return std::pair(policy.explain(TrackedPageId(0)).score,
                     policy.explain(TrackedPageId(1)).score);
  };
  const auto fast = score_after(5);      // 200 tokens/s: factor 2, at its bound
  const auto slow = score_after(10000);  // factor 0.5
  const double decay = short_region_decay()[region_index(Region::kRecent)];
  EXPECT_NEAR(fast.first, std::log(2.0) - 2 * 1000 * decay, 1e-9);
  EXPECT_NEAR(slow.first, std::log(2.0) - 0.5 * 1000 * decay, 1e-9);
  EXPECT_EQ(fast.second, slow.second) << "only dialogue adapts";
}

TEST(MemdecayPolicy, PinsHoldUpToTheCapAndAboveItSaySo) {
  MemdecayOptions options = plain();
  options.protection.pin_cap_bytes = 2500;
  MemdecayPolicy policy(options);
  for (int i = 0; i < 4; ++i) {
    PageMeta meta = page(i, Region::kSystem);
    meta.pinned = true;
    policy.track(meta);
  }
  const EvictionPlan plan = policy.plan({0, Urgency::kPressed, 0});
  EXPECT_EQ(plan.missing_bytes, 2000U);
  EXPECT_EQ(policy.explain(TrackedPageId(1)).shield, Shield::kPinned);
  EXPECT_FALSE(policy.explain(TrackedPageId(1)).pin_refused);
  EXPECT_TRUE(policy.explain(TrackedPageId(2)).pin_refused);
  EXPECT_NE(policy.explain(TrackedPageId(2)).sentence.find("cap"), std::string::npos);
}

TEST(MemdecayPolicy, ACapThatMovesTakesPinsFromTheLastAndGivesThemBack) {
  MemdecayPolicy policy(plain());
  for (const int i : {2, 0, 3, 1}) {
    PageMeta meta = page(i, Region::kSystem);
    meta.pinned = true;
    policy.track(meta);
  }
  EXPECT_EQ(drops(policy, 0), std::vector<int>());
  policy.cap_pins(2500);
  EXPECT_EQ(drops(policy, 0), (std::vector<int>{2, 3}));
  EXPECT_EQ(policy.explain(TrackedPageId(1)).shield, Shield::kPinned);
  EXPECT_TRUE(policy.explain(TrackedPageId(2)).pin_refused);
  policy.cap_pins(3000);
  EXPECT_EQ(drops(policy, 0), (std::vector<int>{3}));
  policy.cap_pins(0);
  EXPECT_EQ(drops(policy, 0), (std::vector<int>{0, 1, 2, 3}));
  policy.cap_pins(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(drops(policy, 0), std::vector<int>());
}

TEST(MemdecayPolicy, ARoundThatAloneIsTooMuchBreaksAfterEverythingElse) {
  MemdecayOptions options = plain();
  options.protection.newest_pages = 1;
  MemdecayPolicy policy(options);
  policy.track(page(0, Region::kRecent));
  for (int i = 1; i < 6; ++i) {
    PageMeta meta = page(i, Region::kTool);
    meta.tool_round = 0;
    meta.tool_core = true;
    policy.track(meta);
  }
  observe(policy, {{0, 0.9F}, {1, 0.5F}, {2, 0.1F}, {3, 0.7F}, {4, 0.3F}});
  EXPECT_EQ(drops(policy, 5000), (std::vector<int>{0})) << "the round holds together";
  EXPECT_EQ(drops(policy, 3000), (std::vector<int>{0, 2, 4})) << "what matters least of it goes";
  EXPECT_EQ(policy.plan({3000, Urgency::kPressed, 0.01}).missing_bytes, 0U);
  EXPECT_EQ(policy.plan({500, Urgency::kPressed, 0.01}).missing_bytes, 500U);
}

TEST(MemdecayPolicy, AToolRoundLivesAndDiesTogetherAndYoungOnesGoLast) {
  MemdecayOptions options = plain();
  options.protection.lag_rounds = 2;
  MemdecayPolicy policy(options);
  for (int i = 0; i < 9; ++i) {  // rounds 0, 1, 2 of call, kept result, raw result
    PageMeta meta = page(i, i % 3 == 2 ? Region::kOrdinary : Region::kTool);
    meta.tool_round = i / 3;
    meta.tool_core = i % 3 != 2;
    policy.track(meta);
  }
  EXPECT_EQ(drops(policy, 8000), (std::vector<int>{2})) << "raw output of the old round first";
  EXPECT_EQ(drops(policy, 7500), (std::vector<int>{2, 1, 0}));
  EXPECT_EQ(drops(policy, 5500), (std::vector<int>{2, 1, 0, 5})) << "then the young rounds";
  policy.advance({100000, 0});
  EXPECT_EQ(drops(policy, 0, Urgency::kGentle).size(), 3U) << "gentle plans leave young rounds";
}

TEST(MemdecayPolicy, FloorsKeepAShareOfEveryInstructionUntilItEnds) {
  MemdecayOptions options = plain();
  options.protection.floor_share = 0.3;
  MemdecayPolicy policy(options);
  for (int i = 0; i < 10; ++i) {
    PageMeta meta = page(i, Region::kOrdinary);
    meta.item = i < 5 ? 0 : 1;
    policy.track(meta);
  }
  EXPECT_EQ(drops(policy, 0).size(), 6U) << "two pages of each stay: 30 % of 5 is 1.5";
  for (int i = 0; i < 5; ++i) policy.track(page(i, Region::kOrdinary));  // instruction 0 has ended
  EXPECT_EQ(drops(policy, 0).size(), 8U);
}

TEST(MemdecayPolicy, ResultsOfOldRoundsHaveNoFloorAndYoungOnesGiveTheirsLast) {
  MemdecayOptions options = plain();
  options.protection.floor_share = 0.3;
  options.protection.lag_rounds = 1;
  options.protection.lag_bonus = 2;
  MemdecayPolicy policy(options);
  for (int i = 0; i < 6; ++i) {  // two rounds of a call and its result; then what is said of them
    PageMeta meta = page(i, i < 4 ? Region::kTool : Region::kSystem);
    if (i < 4) {
      meta.tool_round = i / 2;
      meta.tool_core = true;
      meta.item = i / 2;
    }
    policy.track(meta);
  }
  EXPECT_EQ(drops(policy, 5000), (std::vector<int>{1, 0})) << "the old round goes whole";
  EXPECT_EQ(drops(policy, 3500), (std::vector<int>{1, 0, 4}))
      << "all else goes before the round that is live, whatever it is worth";
  EXPECT_EQ(drops(policy, 2000), (std::vector<int>{1, 0, 4, 5}));
  EXPECT_EQ(drops(policy, 1999), (std::vector<int>{1, 0, 4, 5, 3, 2}))
      << "but no session ends for it";
}

TEST(MemdecayPolicy, TheLadderDemotesLeastDamagePerByteFirstAndDropsLast) {
  MemdecayOptions options = plain();
  options.ladder.enabled = true;
  MemdecayPolicy policy(options);
  for (int i = 0; i < 3; ++i) {
    PageMeta meta = page(i, Region::kOrdinary);
    meta.forms = {{{1000, 0}, {500, 0.001F}, {400, 0.01F}, {250, 0.1F}}};
    meta.exact_share = i == 2 ? 0.5F : 0.0F;
    policy.track(meta);
  }
  // int8 of a page costs 0.001 / 500 bytes a unit of worth, k8v4 0.009 / 100, int4 0.09 / 150; page
  // 2 is worth e times the others.
  const auto forms = [&](std::uint64_t budget) {
    std::vector<std::pair<int, PageForm>> result;
    for (const PlanAction& action : policy.plan({budget, Urgency::kPressed, 0}).actions) {
      result.emplace_back(action.page.value(), action.drop ? PageForm::kF16 : action.form);
    }
    return result;
  };
  using Forms = std::vector<std::pair<int, PageForm>>;
  EXPECT_EQ(forms(2500), (Forms{{0, PageForm::kInt8}}));
  EXPECT_EQ(forms(1500), (Forms{{0, PageForm::kInt8}, {1, PageForm::kInt8}, {2, PageForm::kInt8}}));
  EXPECT_EQ(forms(1400), (Forms{{0, PageForm::kK8V4}, {1, PageForm::kInt8}, {2, PageForm::kInt8}}));
  EXPECT_EQ(forms(900), (Forms{{0, PageForm::kInt4}, {1, PageForm::kInt4}, {2, PageForm::kK8V4}}))
      << "exact values keep int8 keys";
  EXPECT_EQ(forms(899), (Forms{{0, PageForm::kInt4}, {1, PageForm::kInt4}, {2, PageForm::kInt4}}))
      << "until nothing else can give";
  EXPECT_EQ(forms(749), (Forms{{0, PageForm::kF16}, {1, PageForm::kInt4}, {2, PageForm::kInt4}}))
      << "then the lowest is dropped";
}

TEST(MemdecayPolicy, WhatLiesIdleFadesUntilItIsUsedAgain) {
  MemdecayOptions options = plain();
  options.decay = {};
  options.beta = 0;
  options.idle_decay = 1.5;
  MemdecayPolicy policy(options);
  const auto score = [&](int id) { return policy.explain(TrackedPageId(id)).score; };
  policy.track(page(0, Region::kRecent));
  policy.track(page(1, Region::kRecent));
  policy.advance({2000, 0});
  EXPECT_NEAR(score(0), std::log(2.0) - 3, 1e-12) << "nobody looked at it since it was born";
  observe(policy, {{0, 0.6F}, {1, 0.2F}});  // 0.4 is the even share of a page
  policy.advance({3000, 0});
  EXPECT_NEAR(score(0), std::log(2.0) - 1.5, 1e-12);
  EXPECT_NEAR(score(1), std::log(2.0) - 4.5, 1e-12) << "less than the even share is no use";
  EXPECT_EQ(drops(policy, 1000), (std::vector<int>{1}));
  observe(policy, {{0, 0.6F}, {1, 0.2F}}, QueryPhase::kAct, EvidenceKind::kAttentionMass);
  EXPECT_NEAR(score(0), std::log(2.0) - 1.5, 1e-12) << "other evidence is not its own";
}

TEST(MemdecayPolicy, WhatIsLookedAtAgainAndAgainCountsAsToolText) {
  MemdecayOptions options = plain();
  options.decay = {};
  options.beta = 0;
  options.promote_rate = 0.7;
  options.promote_batches = 2;
  MemdecayPolicy policy(options);
  for (int id = 0; id < 3; ++id)
    policy.track(page(id, id < 2 ? Region::kOrdinary : Region::kDecision));
  std::int64_t step = 0;
  const auto look_at = [&](int id) {
    policy.advance({step += 10, 0});
    std::vector<std::pair<int, float>> values = {{0, 0.1F}, {1, 0.1F}, {2, 0.1F}};
    values[static_cast<std::size_t>(id)].second = 0.8F;
    observe(policy, values);
  };
  const auto region = [&](int id) { return policy.explain(TrackedPageId(id)).region; };
  look_at(0);  // half of its latest looks
  EXPECT_EQ(region(0), Region::kOrdinary);
  look_at(0);  // three quarters
  EXPECT_EQ(region(0), Region::kTool);
  EXPECT_NEAR(policy.explain(TrackedPageId(0)).score, std::log(5.0), 1e-12);
  EXPECT_EQ(drops(policy, 2000), (std::vector<int>{1}));
  look_at(2);
  look_at(2);
  EXPECT_EQ(region(2), Region::kDecision) << "nothing becomes weaker";
  EXPECT_EQ(region(0), Region::kOrdinary) << "3/16 are less than half of what was wanted";
  look_at(0);  // 0.59
  EXPECT_EQ(region(0), Region::kOrdinary);
}

TEST(MemdecayPolicy, SmallChangesOfEvidenceDoNotMoveAPage) {
  MemdecayOptions options = plain();
  options.rekey_threshold = 0.5;
  options.evidence.lasting_share = 0;
  MemdecayPolicy policy(options);
  policy.track(page(0, Region::kRecent));
  policy.track(page(1, Region::kRecent));
  observe(policy, {{0, 0.10F}, {1, 0.20F}});
  const auto steps = policy.update_steps();
  observe(policy, {{0, 0.11F}, {1, 0.19F}});
  EXPECT_EQ(policy.update_steps(), steps);
  EXPECT_EQ(drops(policy, 1000), (std::vector<int>{0}));
}

struct Cost {
  double plan_steps;
  double update_steps;
};

/// Comparisons of one plan that drops 64 pages and of one observation of 64 pages, with n tracked.
Cost cost_with(int pages) {
  MemdecayOptions options;
  options.rekey_threshold = 0;
  MemdecayPolicy policy(options);
  std::mt19937 random(5);
  for (int i = 0; i < pages; ++i) {
    policy.advance({i * 32, i * 1.0});
    policy.track(page(i, kRegions[random() % kRegionCount], i * 32));
  }
  const EvictionPlan plan = policy.plan({policy.tracked_bytes() - 64000, Urgency::kPressed, 0});
  EXPECT_EQ(plan.actions.size(), 64U);
  const auto before = policy.update_steps();
  std::vector<std::pair<int, float>> values;
  for (int i = 0; i < 64; ++i) {
    values.emplace_back(static_cast<int>(random() % static_cast<unsigned>(pages)), 0.01F);
  }
  observe(policy, values);
  return {static_cast<double>(plan.steps), static_cast<double>(policy.update_steps() - before)};
}

TEST(MemdecayPolicy, StepsGrowWithTheLogarithmOfThePages) {
  double last_update = 0;
  for (const int pages : {1000, 10000, 100000, 1000000}) {
    const Cost cost = cost_with(pages);
    RecordProperty("plan_steps_" + std::to_string(pages), static_cast<int>(cost.plan_steps));
    std::printf("[ measured ] %7d pages: plan of 64 drops %.0f steps, 64 observations %.0f\n",
                pages, cost.plan_steps, cost.update_steps);
    // A plan's frontier holds at most R + k nodes, whatever the number of pages.
    EXPECT_LT(cost.plan_steps, 64.0 * 3 * (2 + std::log2(64 + 10)) * 2);
    EXPECT_LT(cost.update_steps, 64 * 4 * std::log2(pages));
    if (last_update > 0) {
      EXPECT_LT(cost.update_steps, 2 * last_update) << "ten times the pages";
    }
    last_update = cost.update_steps;
  }
}

}  // namespace
}  // namespace memdecay
