#include "eval/cells/step_latency.h"

#include <gtest/gtest.h>

#include "engine/extend_without_logits.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

TEST(StepLatency, TurnEndsAreSpreadEvenlyAndTheLastIsAmongThem) {
  std::vector<std::uint8_t> judged;
  for (int turn = 0; turn < 6; ++turn) judged.insert(judged.end(), {0, 0, 1, 1});
  const auto ends = [&](std::size_t first, std::size_t most) {
    std::vector<std::pair<std::size_t, std::int32_t>> pairs;
    for (const TurnEnd& end : spread_turn_ends(judged, first, most))
      pairs.emplace_back(end.tokens, end.turn);
    return pairs;
  };
  using Pairs = std::vector<std::pair<std::size_t, std::int32_t>>;
  EXPECT_EQ(ends(0, 3), (Pairs{{7, 2}, {15, 4}, {23, 6}}));
  EXPECT_EQ(ends(12, 12), (Pairs{{15, 4}, {19, 5}, {23, 6}}));
  EXPECT_EQ(ends(0, 0), Pairs());
  judged.assign(8, 0);
  EXPECT_EQ(ends(0, 3), Pairs());
}

TEST(StepLatency, AFewStepsAreTimedAndTheSessionIsAsItWas) {
  const ModelFile file("llama", RandomModelShape{});
  EngineOptions options = file.options();
  options.context_tokens = 256;
  const auto engine = ModelFile::engine(options);
  SessionOptions own;
  own.policy = "h2o";
  own.budget_bytes = file.bytes_of_pages(12);
  const auto session = engine->open_session(own).value();
  ASSERT_TRUE(extend_without_logits(*engine, *session, random_prompt(240, 1)).ok());
  const auto held = engine->held_tokens(*session);
  const auto samples = time_steps(*engine, *session, 7).value();
  ASSERT_EQ(samples.size(), 4U);
  for (const StepSample& sample : samples) {
    EXPECT_EQ(sample.turn, 7);
    EXPECT_GT(sample.ms, 0);
  }
  EXPECT_EQ(session->tokens().size(), 240U);
  EXPECT_EQ(engine->held_tokens(*session), held);
  SessionOptions all;
  all.policy = "none";
  const auto full = engine->open_session(all).value();
  ASSERT_TRUE(extend_without_logits(*engine, *full, random_prompt(254, 1)).ok());
  EXPECT_TRUE(time_steps(*engine, *full, 7)->empty()) << "the context has no room for them";
}

}  // namespace
}  // namespace memdecay
