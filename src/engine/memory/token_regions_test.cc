#include "engine/memory/token_regions.h"

#include <gtest/gtest.h>

#include "engine/memory/token_embeddings.h"
#include "engine/model_file_for_test.h"

namespace memdecay {
namespace {

class LoadedModel {
 public:
  explicit LoadedModel(const RandomModelShape& shape) : file_("llama", shape), team_(1) {
    Result<std::unique_ptr<Model>> model = Model::load(file_.path(), Precision::kFast, team_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model).value();
  }
  const Model& operator*() const { return *model_; }

 private:
  ModelFile file_;
  ThreadTeam team_;
  std::unique_ptr<Model> model_;
};

RandomModelShape letters() {
  RandomModelShape shape;
  shape.pieces = {"a", "b", "Ċ", "ĊĊ", "bĊĊ", "ĠĊ"};
  return shape;
}

/// Reads only the token itself: the sign of its first embedding value decides.
RegionClassifier first_value_reader(std::int32_t width) {
  ClassifierShape shape;
  shape.embedding_width = width;
  shape.projected_width = shape.hidden_width = 1;
  shape.near_tokens = shape.wide_tokens = shape.smooth_tokens = 0;
  ClassifierWeights weights = ClassifierWeights::zeros(shape);
  weights.projection[0] = 1.0F;
  weights.hidden[0] = 1.0F;
  weights.output[region_index(Region::kTool)] = 1.0F;
  weights.output_bias = {-9.0F, -9.0F, 0.0F, -9.0F, 1e-6F};
  return RegionClassifier(shape, weights);
}

TEST(TokenRegionsTest, ClassifiesByTheModelsOwnEmbeddings) {
  const LoadedModel model(letters());
  const RegionClassifier classifier = first_value_reader((*model).config().embedding_length);
  const std::vector<TokenId> tokens = {7, 3, 7, 40, 12, 1, 0, 49, 3};
  const std::vector<Region> regions = classify_tokens(*model, classifier, tokens);
  ASSERT_EQ(regions.size(), tokens.size());
  std::vector<float> embedding(64);
  int tools = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    read_embedding(*model, tokens[i], embedding);
    EXPECT_EQ(regions[i], embedding[0] > 1e-6F ? Region::kTool : Region::kOrdinary);
    tools += regions[i] == Region::kTool ? 1 : 0;
  }
  EXPECT_GT(tools, 0);
  EXPECT_LT(tools, static_cast<int>(tokens.size()));
  EXPECT_TRUE(classify_tokens(*model, classifier, {}).empty());
}

TEST(TokenRegionsTest, AModelWithoutAClassifierHasNone) {
  const LoadedModel model(letters());
  EXPECT_EQ(find_classifier(*model), nullptr);
  EXPECT_FALSE(classify_tokens(*model, std::vector<TokenId>{1, 2}).has_value());
}

TEST(TokenRegionsTest, ARawPromptOfAModelWithoutAClassifierGoesByTheRules) {
  const LoadedModel model(letters());
  Prompt prompt;
  for (std::size_t i = 0; i < kFewRawTokens; ++i) {
    prompt.text.push_back('a');
    prompt.tokens.push_back(1);
    prompt.token_ends.push_back(static_cast<std::uint32_t>(i + 1));
    prompt.origins.emplace_back();
  }
  const Result<PromptLabels> labels = label_raw_prompt(*model, prompt);
  ASSERT_TRUE(labels.ok());
  ASSERT_EQ(labels->regions.size(), 1U);
  EXPECT_EQ(labels->regions[0].region, label_prompt(prompt)->regions[0].region);
  prompt.text.pop_back();
  prompt.tokens.pop_back();
  prompt.token_ends.pop_back();
  prompt.origins.pop_back();
  EXPECT_TRUE(label_raw_prompt(*model, prompt)->regions.empty()) << "too short to be cut";
}

TEST(TokenRegionsTest, AFileFitsItsModelAndNoOther) {
  const LoadedModel model(letters());
  const ClassifierFile file =
      classifier_file_for(*model, "it", first_value_reader((*model).config().embedding_length));
  EXPECT_TRUE(classifier_fits(file, *model));
  RandomModelShape wider = letters();
  wider.vocab = 60;
  EXPECT_FALSE(classifier_fits(file, *LoadedModel(wider)));
  ClassifierFile stranger = file;
  for (float& value : stranger.probe_projections) value = -value;
  EXPECT_FALSE(classifier_fits(stranger, *model));
}

TEST(TokenEmbeddingsTest, SegmentsBeginBehindBlankLines) {
  const LoadedModel model(letters());
  //                                        a  \n \n a  b\n\n a  \n a  " \n" \n  a
  const std::vector<TokenId> tokens = {0, 2, 2, 0, 4, 0, 2, 0, 5, 2, 0};
  const std::vector<std::int32_t> places = {0, 1, 2, 0, 1, 0, 1, 2, 3, 4, 0};
  EXPECT_EQ(segment_places(*model, tokens), places);
}

TEST(TokenEmbeddingsTest, DistinctTokensAreNumberedAsTheyAppear) {
  DistinctTokens distinct(10);
  EXPECT_EQ(distinct.rows_of(std::vector<TokenId>{9, 4, 9, 0}),
            (std::vector<std::int32_t>{0, 1, 0, 2}));
  EXPECT_EQ(distinct.rows_of(std::vector<TokenId>{4, 5}), (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(distinct.tokens(), (std::vector<TokenId>{9, 4, 0, 5}));
}

}  // namespace
}  // namespace memdecay
