#include "eval/perplexity/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/log_softmax.h"
#include "engine/model_file_for_test.h"
#include "sys/folder_for_test.h"

namespace memdecay {
namespace {

class PerplexityTest : public testing::Test {
 protected:
  PerplexityOptions options(int context) const {
    PerplexityOptions options;
    options.context = context;
    return options;
  }
  std::string refusal(const PerplexityOptions& options) {
    const auto result = measure_perplexity(*engine_, text_, options);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(engine_->cache().sequence_count(), 0) << "a failure holds nothing";
    return result.status().message();
  }

  const FolderForTest folder_;
  const std::string saved_ = folder_.path("saved.logits");
  ModelFile file_{"qwen2"};
  std::unique_ptr<Engine> engine_ = file_.engine();
  std::vector<TokenId> text_ = random_prompt(101, 4);
};

TEST_F(PerplexityTest, ScoresTheSecondHalfOfEachChunkAsDefined) {
  for (const int context : {4, 5, 20, 33, 100}) {
    double sum = 0;
    int scored = 0;
    for (int begin = 0; begin + context <= 101; begin += context) {
      const std::span<const TokenId> chunk = std::span<const TokenId>(text_).subspan(
          static_cast<std::size_t>(begin), static_cast<std::size_t>(context));
      const auto session = engine_->open_session().value();
      const auto score = [&](int position, std::span<const float> logits) {
        if (position < context / 2 || position + 1 >= context) return;
        std::vector<double> log_probs(logits.size());
        log_softmax(logits, log_probs);
        sum -= log_probs[static_cast<std::size_t>(chunk[static_cast<std::size_t>(position) + 1])];
        ++scored;
      };
      ASSERT_TRUE(engine_->extend(*session, chunk, 0, score).ok());
    }
    const PerplexityResult result = measure_perplexity(*engine_, text_, options(context)).value();
    EXPECT_EQ(result.chunks, 101 / context);
    EXPECT_EQ(result.scored_tokens, scored);
    EXPECT_NEAR(result.perplexity, std::exp(sum / scored), 1e-6 * result.perplexity);
    EXPECT_FALSE(result.comparison.has_value());
  }
}

TEST_F(PerplexityTest, AgainstItsOwnPredictionsNothingDiverges) {
  PerplexityOptions save = options(20);
  save.save_file = saved_;
  save.chunks = 3;
  const PerplexityResult first = measure_perplexity(*engine_, text_, save).value();
  PerplexityOptions compare = options(512);  // the base file's chunks count, not these
  compare.base_file = saved_;
  int told = 0;
  compare.on_progress = [&](int done, int all) {
    EXPECT_EQ(done, ++told);
    EXPECT_EQ(all, 3);
  };
  const PerplexityResult second = measure_perplexity(*engine_, {}, compare).value();
  EXPECT_EQ(told, 3);
  EXPECT_EQ(second.perplexity, first.perplexity);
  EXPECT_EQ(second.scored_tokens, 27);
  ASSERT_TRUE(second.comparison.has_value());
  EXPECT_NEAR(second.comparison->mean_kl, 0.0, 2e-5);
  EXPECT_LT(second.comparison->max_kl, 2e-4);
  EXPECT_EQ(second.comparison->same_top, 1.0);
}

TEST_F(PerplexityTest, AnotherModelDivergesAndAnotherVocabularyIsRefused) {
  PerplexityOptions save = options(20);
  save.save_file = saved_;
  ASSERT_TRUE(measure_perplexity(*engine_, text_, save).ok());
  PerplexityOptions compare;
  compare.base_file = saved_;
  const ModelFile other("llama");
  const auto other_engine = other.engine();
  const auto result = measure_perplexity(*other_engine, {}, compare).value();
  EXPECT_GT(result.comparison->mean_kl, 0.01);
  EXPECT_LE(result.comparison->mean_kl, result.comparison->p99_kl);
  EXPECT_LE(result.comparison->p99_kl, result.comparison->max_kl);
  EXPECT_LT(result.comparison->same_top, 1.0);

  RandomModelShape shape;
  shape.vocab = 51;
  const ModelFile larger("llama", shape);
  const auto refused = measure_perplexity(*larger.engine(), {}, compare);
  EXPECT_NE(refused.status().message().find("its vocabulary has 50 pieces, this one 51"),
            std::string::npos);
}

TEST_F(PerplexityTest, WhatCannotBeMeasuredIsRefusedInWords) {
  EXPECT_EQ(refusal(options(3)), "a chunk needs at least 4 tokens");
  EXPECT_EQ(refusal(options(102)), "the text has 101 tokens, but one chunk needs 102");
  PerplexityOptions both = options(20);
  folder_.write("saved.logits", "x");
  both.base_file = both.save_file = saved_;
  EXPECT_NE(refusal(both).find("overwritten"), std::string::npos);
  both.save_file.clear();
  EXPECT_NE(refusal(both).find("no logits file"), std::string::npos);

  EngineOptions engine_options = file_.options();
  engine_options.context_tokens = 32;
  const auto small = ModelFile::engine(engine_options);
  EXPECT_EQ(measure_perplexity(*small, text_, options(33)).status().message(),
            "chunks of 33 tokens do not fit the context of 32");
}

}  // namespace
}  // namespace memdecay
