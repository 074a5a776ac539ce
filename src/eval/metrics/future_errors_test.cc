#include "eval/metrics/future_errors.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

PageMeta page(int number) {
  PageMeta meta;
  meta.id = TrackedPageId(number);
  meta.position = 32 * number;
  meta.tokens = 32;
  meta.bytes = 100;
  return meta;
}

PolicyOptions unprotected() {
  PolicyOptions options;
  options.memdecay.protection.sink_tokens = 0;
  options.memdecay.protection.newest_pages = 0;
  return options;
}

TEST(FutureErrors, SumsWhatIsBehindAStep) {
  FutureErrors errors;
  errors.record(32, 10, 0.5);
  errors.record(32, 20, 0.25);
  errors.record(32, 20, 0.25);
  errors.record(32, 40, 2.0);
  EXPECT_DOUBLE_EQ(errors.behind(32, 9), 3.0);
  EXPECT_DOUBLE_EQ(errors.behind(32, 10), 2.5);
  EXPECT_DOUBLE_EQ(errors.behind(32, 19), 2.5);
  EXPECT_DOUBLE_EQ(errors.behind(32, 20), 2.0);
  EXPECT_DOUBLE_EQ(errors.behind(32, 40), 0.0);
  EXPECT_DOUBLE_EQ(errors.behind(64, 0), 0.0);
}

TEST(FutureErrors, TheOracleDropsWhatTheRecordedAssistantWillMissLeast) {
  FutureErrors errors;
  const auto recorder = errors.recorder(unprotected());
  EXPECT_TRUE(recorder->wants(EvidenceKind::kDeletionError));
  for (int i = 0; i < 3; ++i) recorder->track(page(i));
  const auto observe = [&](std::int64_t step, QueryPhase phase, std::vector<float> values) {
    recorder->advance({step, 0});
    std::vector<PageEvidence> pages;
    for (int i = 0; i < 3; ++i)
      pages.push_back({TrackedPageId(i), values[static_cast<std::size_t>(i)]});
    recorder->observe({EvidenceKind::kDeletionError, phase, pages});
  };
  observe(100, QueryPhase::kAct, {0.9F, 0.1F, 0.3F});
  observe(150, QueryPhase::kTool, {0.0F, 9.0F, 0.0F});  // nobody of the assistant asked
  observe(200, QueryPhase::kThink, {0.1F, 0.3F, 0.2F});

  const auto oracle = errors.oracle(unprotected());
  for (int i = 0; i < 3; ++i) oracle->track(page(i));
  const auto first_drop = [&] {
    const EvictionPlan plan = oracle->plan({200});
    return plan.actions.at(0).page.value();
  };
  EXPECT_EQ(first_drop(), 1) << "1.0 of page 0 is ahead, 0.4, 0.5";
  oracle->advance({100, 0});
  std::vector<PageEvidence> any;
  for (int i = 0; i < 3; ++i) any.push_back({TrackedPageId(i), 0});
  oracle->observe({EvidenceKind::kLastQueryMass, QueryPhase::kAct, any});
  EXPECT_EQ(first_drop(), 0) << "what mattered is past: 0.1 of page 0, 0.3, 0.2";
}

}  // namespace
}  // namespace memdecay
