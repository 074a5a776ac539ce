#include "eval/calibration/use_recorder.h"

#include <gtest/gtest.h>

namespace memdecay {
namespace {

PageMeta page_meta(int id, Position position, Region region, std::int64_t born) {
  PageMeta meta;
  meta.id = TrackedPageId(id);
  meta.position = position;
  meta.tokens = 10;
  meta.region = region;
  meta.born_step = born;
  return meta;
}

void look(UseRecorder& recorder, QueryPhase phase, std::vector<PageEvidence> pages,
          EvidenceKind kind = EvidenceKind::kAttentionMass) {
  recorder.observe({kind, phase, pages});
}

TEST(UseRecorder, ALookIsMoreThanTheEvenShareOfTheAssistantsAttention) {
  UseRecorder recorder(1.0);
  recorder.track(page_meta(0, 0, Region::kSystem, 10));
  recorder.track(page_meta(1, 10, Region::kTool, 20));
  recorder.track(page_meta(2, 20, Region::kRecent, 30));
  recorder.advance({100, 0});
  // Page 0 rests attention: of what is left, 0.1 and 0.3, page 2 has more than half.
  const std::vector<PageEvidence> even_less = {
      {TrackedPageId(0), 0.6F}, {TrackedPageId(1), 0.1F}, {TrackedPageId(2), 0.3F}};
  look(recorder, QueryPhase::kAct, even_less);
  recorder.advance({200, 0});
  const std::vector<PageEvidence> other = {
      {TrackedPageId(0), 0.1F}, {TrackedPageId(1), 0.6F}, {TrackedPageId(2), 0.3F}};
  look(recorder, QueryPhase::kTool, other);  // nobody's look
  look(recorder, QueryPhase::kOther, other);
  look(recorder, QueryPhase::kAct, other, EvidenceKind::kDeletionError);
  recorder.advance({300, 0});
  look(recorder, QueryPhase::kThink, other);
  recorder.advance({400, 0});
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].region, Region::kTool);
  EXPECT_EQ(records[0].born, 20);
  EXPECT_EQ(records[0].last_use, 300);
  EXPECT_EQ(records[0].run_end, 400);
  EXPECT_EQ(records[1].region, Region::kRecent);
  EXPECT_EQ(records[1].last_use, 100);
}

TEST(UseRecorder, APageThatNobodyLookedAtWasLastInUseWhenItWasBorn) {
  UseRecorder recorder(1.0);
  recorder.track(page_meta(3, 50, Region::kTool, 60));
  recorder.track(page_meta(3, 50, Region::kOrdinary, 60));  // told anew
  recorder.track(page_meta(4, 60, Region::kTool, 70));
  recorder.release(TrackedPageId(4));
  recorder.advance({90, 0});
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].region, Region::kOrdinary);
  EXPECT_EQ(records[0].last_use, 60);
  EXPECT_TRUE(recorder.plan({}).actions.empty());
}

}  // namespace
}  // namespace memdecay
