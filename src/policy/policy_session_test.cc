#include "policy/policy_session.h"

#include <gtest/gtest.h>

#include <random>

namespace memdecay {
namespace {

PolicySessionOptions small() {
  PolicySessionOptions options;
  options.page_tokens = 8;
  options.bytes_per_token = 10;
  options.options.memdecay.protection.newest_pages = 2;
  return options;
}

TEST(PolicySession, TokenByTokenEqualsAllAtOnce) {
  auto whole = PolicySession::open(small());
  auto single = PolicySession::open(small());
  ASSERT_TRUE(whole.ok() && single.ok());
  ASSERT_TRUE(whole->append({.tokens = 21, .region = Region::kTool}).ok());
  for (int i = 0; i < 21; ++i) {
    const auto page = single->append({.tokens = 1, .region = Region::kTool});
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(page->value(), i / 8);
  }
  EXPECT_EQ(whole->page_count(), 3);
  EXPECT_EQ(single->page_count(), 3);
  EXPECT_EQ(single->live_bytes(), 210U);
  EXPECT_EQ(whole->plan({100, Urgency::kPressed, 0}).actions,
            single->plan({100, Urgency::kPressed, 0}).actions);
}

TEST(PolicySession, APageNeverSpansTwoRegionsRoundsItemsOrPins) {
  auto session = PolicySession::open(small());
  ASSERT_TRUE(session.ok());
  const std::vector<AppendRequest> requests = {
      {.tokens = 3},
      {.tokens = 3, .region = Region::kTool},
      {.tokens = 3, .region = Region::kTool, .tool_round = 0},
      {.tokens = 3, .region = Region::kTool, .tool_round = 0, .tool_core = true},
      {.tokens = 3, .region = Region::kTool, .item = 0},
      {.tokens = 3, .region = Region::kTool, .pinned = true, .item = 0}};
  int expected = 0;
  for (const AppendRequest& request : requests) {
    EXPECT_EQ(session->append(request)->value(), expected++);
  }
  session->seal();
  EXPECT_EQ(session->append(requests.back())->value(), expected);
}

TEST(PolicySession, StaysWithinItsBudgetOverALongRandomLife) {
  for (const std::string_view policy : policy_names()) {
    PolicySessionOptions options = small();
    options.policy = policy;
    options.options.memdecay.ladder.enabled = policy.size() % 2 == 0;
    options.options.memdecay.protection.pin_cap_bytes = 300;
    auto session = PolicySession::open(options);
    ASSERT_TRUE(session.ok());
    std::mt19937 random(1);
    for (int i = 0; i < 150; ++i) {
      AppendRequest request;
      request.tokens = 1 + static_cast<int>(random() % 20);
      request.region = kRegions[random() % kRegionCount];
      request.pinned = random() % 8 == 0;
      if (random() % 2 == 0) {
        request.tool_round = i / 6;
        request.tool_core = random() % 2 == 0;
      }
      ASSERT_TRUE(session->append(request).ok());
      std::vector<PageEvidence> evidence;
      for (int page = 0; page < session->page_count(); ++page) {
        evidence.push_back({TrackedPageId(page), static_cast<float>(random() % 100) / 100.0F});
      }
      ASSERT_TRUE(session
                      ->observe({static_cast<EvidenceKind>(i % 3),
                                 static_cast<QueryPhase>(random() % 4), evidence})
                      .ok());
      const EvictionPlan plan = session->plan({1000, Urgency::kPressed, 0});
      ASSERT_TRUE(session->apply(plan.actions).ok());
      ASSERT_LE(session->live_bytes(), 1000 + plan.missing_bytes);
      // What may stay above: pins of 300 bytes, 2 newest pages of 80, a sink, the latest round.
      ASSERT_LE(session->live_bytes(), 1900U) << policy;
    }
  }
}

}  // namespace
}  // namespace memdecay
