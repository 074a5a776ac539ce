#include "eval/speed/speed.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/model_file_for_test.h"

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

TEST(SpeedRunTest, MeasuresPromptsAndDecodingAtAnyDepthAndLeavesNothing) {
  const ModelFile file("gemma3");
  EngineOptions engine_options = file.options();
  engine_options.context_tokens = 150;
  engine_options.share_prefixes = false;
  const auto engine = ModelFile::engine(engine_options);
  for (const SpeedCase& speed_case :
       {SpeedCase{70, 0, 0}, SpeedCase{0, 5, 0}, SpeedCase{9, 0, 100}, SpeedCase{0, 3, 147}}) {
    const auto run = SpeedRun::prepare(*engine, speed_case).value();
    EXPECT_GT(run->repeat().value(), 0);
    EXPECT_GT(run->repeat().value(), 0);
    EXPECT_TRUE(engine->cache().validate().ok());
    if (speed_case.n_gen == 0) {
      EXPECT_EQ(run->bytes_moved(), 0U);
      continue;
    }
    std::uint64_t bytes = 0;
    for (int i = 1; i <= speed_case.n_gen; ++i) {
      bytes += engine->model().weights().bytes_per_token;
      for (const KvLayerGroup& group : engine->cache().groups()) {
        const int depth = speed_case.n_depth + i;
        bytes +=
            static_cast<std::uint64_t>(group.window > 0 ? std::min(depth, group.window) : depth) *
            group.layout.page_bytes() / static_cast<std::uint64_t>(group.layout.page_tokens);
      }
    }
    EXPECT_EQ(run->bytes_moved(), bytes);
  }
  EXPECT_EQ(engine->cache().budget().current_bytes(), engine->cache().overhead_bytes());
  EXPECT_EQ(SpeedRun::prepare(*engine, {0, 4, 147}).status().message(),
            "151 tokens do not fit the context of 150 (set it with -c)");
}

TEST(SpeedRunTest, CountsTheBytesOfEachPagesOwnForm) {
  const ModelFile file("qwen2");
  const auto kv_bytes = [&](KvForms forms) {
    EngineOptions options = file.options();
    options.kv_forms = forms;
    const auto engine = ModelFile::engine(options);
    const auto run = SpeedRun::prepare(*engine, {0, 1, 256}).value();
    return run->bytes_moved() - engine->model().weights().bytes_per_token;
  };
  const ModelFile same("qwen2");
  const KvPageLayout layout = same.engine()->cache().groups().front().layout;
  const std::uint64_t token = layout.page_bytes() / 16;
  EXPECT_EQ(kv_bytes(KvForms::kF16), 257 * token);
  // What is sealed has changed its form, the token to come is written as ever.
  EXPECT_EQ(kv_bytes(KvForms::kInt4), 16 * layout.in(KvFormat::kInt4).page_bytes() + token);
}

}  // namespace
}  // namespace memdecay
