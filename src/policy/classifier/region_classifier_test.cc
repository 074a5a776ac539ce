#include "policy/classifier/region_classifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "policy/regions/region_confusion.h"

namespace memdecay {
namespace {

ClassifierShape small_shape() {
  ClassifierShape shape;
  shape.embedding_width = 3;
  shape.projected_width = 2;
  shape.hidden_width = 4;
  shape.near_tokens = 2;
  shape.wide_tokens = 5;
  shape.smooth_tokens = 0;
  return shape;
}

void fill_randomly(std::mt19937& random, std::vector<float>& values) {
  std::normal_distribution<float> normal(0.0F, 1.0F);
  for (float& value : values) value = normal(random);
}

ClassifierWeights random_weights(const ClassifierShape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  ClassifierWeights weights = ClassifierWeights::zeros(shape);
  fill_randomly(random, weights.projection);
  fill_randomly(random, weights.hidden);
  fill_randomly(random, weights.hidden_bias);
  fill_randomly(random, weights.output);
  fill_randomly(random, weights.output_bias);
  return weights;
}

/// The formula of the header, read aloud in doubles: embeddings are averaged first and projected
/// afterwards, the other way round.
std::array<double, kRegionCount> naive_scores(const ClassifierShape& shape,
                                              const ClassifierWeights& weights,
                                              const std::vector<std::vector<double>>& embeddings,
                                              const std::vector<std::int32_t>& places, int i) {
  const int count = static_cast<int>(embeddings.size());
  const int projected = shape.projected_width;
  std::vector<double> x;
  const auto add_mean = [&](int begin, int end) {
    begin = std::max(begin, 0);
    end = std::min(end, count);
    std::vector<double> mean(static_cast<std::size_t>(shape.embedding_width));
    for (int j = begin; j < end; ++j) {
      for (std::size_t d = 0; d < mean.size(); ++d)
        mean[d] += embeddings[static_cast<std::size_t>(j)][d] / (end - begin);
    }
    for (int k = 0; k < projected; ++k) {
      double sum = 0;
      for (std::size_t d = 0; d < mean.size(); ++d)
        sum += mean[d] * double(weights.projection[d * static_cast<std::size_t>(projected) +
                                                   static_cast<std::size_t>(k)]);
      x.push_back(sum);
    }
  };
  add_mean(i, i + 1);
  add_mean(i - shape.near_tokens, i);
  add_mean(i + 1, i + 1 + shape.near_tokens);
  add_mean(i - shape.wide_tokens, i);
  add_mean(i + 1, i + 1 + shape.wide_tokens);
  x.push_back(std::log2(1.0 + i) / 12);
  x.push_back(std::log2(1.0 + places[static_cast<std::size_t>(i)]) / 8);
  const std::size_t hidden = weights.hidden_bias.size();
  std::array<double, kRegionCount> scores{};
  for (std::size_t r = 0; r < kRegionCount; ++r) scores[r] = double(weights.output_bias[r]);
  for (std::size_t k = 0; k < hidden; ++k) {
    double sum = double(weights.hidden_bias[k]);
    for (std::size_t n = 0; n < x.size(); ++n) sum += x[n] * double(weights.hidden[n * hidden + k]);
    for (std::size_t r = 0; r < kRegionCount; ++r)
      scores[r] += std::max(0.0, sum) * double(weights.output[k * kRegionCount + r]);
  }
  double all = 0;
  for (const double score : scores) all += std::exp(score);
  for (double& score : scores) score -= std::log(all);
  return scores;
}

TEST(RegionClassifierTest, FollowsItsFormulaAtEveryLengthAndEdge) {
  const ClassifierShape shape = small_shape();
  const RegionClassifier classifier(shape, random_weights(shape, 5));
  std::mt19937 random(8);
  std::vector<float> table(7 * 3);
  fill_randomly(random, table);
  std::vector<float> projected(7 * 2);
  for (std::size_t row = 0; row < 7; ++row)
    classifier.project(std::span(table).subspan(row * 3, 3),
                       std::span(projected).subspan(row * 2, 2));
  for (const int count : {0, 1, 2, 3, 6, 11, 30}) {
    std::vector<std::int32_t> rows, places;
    std::vector<std::vector<double>> embeddings;
    for (int i = 0; i < count; ++i) {
      const std::size_t row = random() % 7;
      rows.push_back(static_cast<std::int32_t>(row));
      places.push_back(static_cast<std::int32_t>(random() % 50));
      embeddings.push_back(
          {double(table[row * 3]), double(table[row * 3 + 1]), double(table[row * 3 + 2])});
    }
    const auto scores = classifier.log_probabilities({rows, places}, projected);
    ASSERT_EQ(scores.size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      const auto expected = naive_scores(shape, classifier.weights(), embeddings, places, i);
      for (std::size_t r = 0; r < kRegionCount; ++r)
        EXPECT_NEAR(scores[static_cast<std::size_t>(i)][r], expected[r], 2e-4);
    }
  }
}

/// Says region 2 where the token's embedding is positive, else region 3, with a strength.
RegionClassifier sign_reader(std::int32_t smooth) {
  ClassifierShape shape;
  shape.embedding_width = shape.projected_width = 1;
  shape.hidden_width = 2;
  shape.near_tokens = shape.wide_tokens = 0;
  shape.smooth_tokens = smooth;
  ClassifierWeights weights = ClassifierWeights::zeros(shape);
  weights.projection = {1.0F};
  weights.hidden[0] = 1.0F;
  weights.hidden[1] = -1.0F;
  weights.output[0 * kRegionCount + 2] = 1.0F;
  weights.output[1 * kRegionCount + 3] = 1.0F;
  weights.output_bias = {-9.0F, -9.0F, 0.0F, 0.0F, -9.0F};
  return RegionClassifier(shape, weights);
}

TEST(RegionClassifierTest, SmoothingOutvotesALonelyTokenAndKeepsARun) {
  const std::vector<float> projected = {2.0F, -3.0F};
  //                                      a lonely one          a run
  const std::vector<std::int32_t> rows = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
  const std::vector<std::int32_t> places(rows.size());
  const auto named = [&](std::int32_t smooth) {
    return sign_reader(smooth).classify({rows, places}, projected);
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(named(0)[i], rows[i] == 0 ? Region::kTool : Region::kRecent);
  const std::vector<Region> smooth = named(2);
  EXPECT_EQ(smooth[4], Region::kTool);
  for (std::size_t i = 10; i < rows.size(); ++i) EXPECT_EQ(smooth[i], Region::kRecent);
}

TEST(RegionClassifierTest, EqualScoresGoToTheStrongerRegion) {
  const ClassifierShape shape = small_shape();
  const RegionClassifier classifier(shape, ClassifierWeights::zeros(shape));
  const std::vector<std::int32_t> rows = {0, 0}, places = {0, 1};
  const std::vector<float> projected(2);
  EXPECT_EQ(classifier.classify({rows, places}, projected),
            (std::vector<Region>{Region::kSystem, Region::kSystem}));
}

TEST(RegionClassifierTest, ShapesBeyondReasonAreRefused) {
  EXPECT_TRUE(small_shape().is_sane());
  ClassifierShape shape = small_shape();
  shape.embedding_width = 0;
  EXPECT_FALSE(shape.is_sane());
  shape = small_shape();
  shape.hidden_width = 1 << 20;
  EXPECT_FALSE(shape.is_sane());
  shape = small_shape();
  shape.near_tokens = -1;
  EXPECT_FALSE(shape.is_sane());
}

TEST(RegionConfusionTest, ByHand) {
  RegionConfusion confusion;
  // system: 3 right, 1 taken for tool; tool: 2 right, 2 taken for system; nothing else.
  const std::vector<Region> truth = {Region::kSystem, Region::kSystem, Region::kSystem,
                                     Region::kSystem, Region::kTool,   Region::kTool,
                                     Region::kTool,   Region::kTool};
  const std::vector<Region> named = {Region::kSystem, Region::kSystem, Region::kSystem,
                                     Region::kTool,   Region::kTool,   Region::kTool,
                                     Region::kSystem, Region::kSystem};
  confusion.add(truth, named);
  EXPECT_EQ(confusion.tokens(), 8);
  EXPECT_DOUBLE_EQ(confusion.accuracy(), 5.0 / 8);
  EXPECT_DOUBLE_EQ(*confusion.f1(Region::kSystem), 6.0 / 9);  // 2 * 3 / (4 + 5)
  EXPECT_DOUBLE_EQ(*confusion.f1(Region::kTool), 4.0 / 7);    // 2 * 2 / (4 + 3)
  EXPECT_FALSE(confusion.f1(Region::kRecent).has_value());
  EXPECT_DOUBLE_EQ(confusion.macro_f1(), (6.0 / 9 + 4.0 / 7) / 2);
  confusion.add(Region::kRecent, Region::kSystem);
  EXPECT_DOUBLE_EQ(*confusion.f1(Region::kRecent), 0.0);
  EXPECT_DOUBLE_EQ(RegionConfusion().accuracy(), 0.0);
  EXPECT_DOUBLE_EQ(RegionConfusion().macro_f1(), 0.0);
}

}  // namespace
}  // namespace memdecay
