#include "policy/classifier/classifier_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace memdecay {
namespace {

constexpr std::int32_t kWidth = 6;
constexpr std::int32_t kRows = 40;

std::vector<float> random_embeddings(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.02F);  // as small as real ones
  std::vector<float> table(kRows * kWidth);
  for (float& value : table) value = normal(random);
  return table;
}

/// Runs of one region each; rows 8r..8r+7 stand for region r, but every fourth token is any row, so
/// that only the neighbours say what it is.
LabelledText text_of_runs(std::mt19937& random, int runs) {
  LabelledText text;
  for (int run = 0; run < runs; ++run) {
    const std::size_t region = random() % kRegionCount;
    const int length = 10 + static_cast<int>(random() % 20);
    for (int i = 0; i < length; ++i) {
      const std::size_t row = i % 4 == 3 ? random() % kRows : 8 * region + random() % 8;
      text.rows.push_back(static_cast<std::int32_t>(row));
      text.places.push_back(i);
      text.labels.push_back(kRegions[region]);
    }
  }
  return text;
}

std::vector<LabelledText> texts_of_runs(std::uint32_t seed, int texts) {
  std::mt19937 random(seed);
  std::vector<LabelledText> all;
  for (int i = 0; i < texts; ++i) all.push_back(text_of_runs(random, 12));
  return all;
}

TrainingOptions small_options() {
  TrainingOptions options;
  options.shape.embedding_width = kWidth;
  options.shape.projected_width = 5;
  options.shape.hidden_width = 16;
  options.shape.wide_tokens = 6;
  options.shape.smooth_tokens = 2;
  options.epochs = 40;
  options.chunk_tokens = 17;
  options.batch_chunks = 4;
  options.learning_rate = 1e-2;
  return options;
}

TEST(ClassifierTrainingTest, LearnsWhatNeighboursSay) {
  const std::vector<float> embeddings = random_embeddings(1);
  const auto training = texts_of_runs(2, 20), held_out = texts_of_runs(3, 5),
             test = texts_of_runs(4, 8);
  const auto trained = train_classifier({embeddings, training, held_out}, small_options());
  ASSERT_TRUE(trained.ok()) << trained.status().message();
  const RegionConfusion confusion = measure_classifier(trained->classifier, embeddings, test);
  EXPECT_GT(confusion.accuracy(), 0.85);
  EXPECT_GT(confusion.macro_f1(), 0.85);
  EXPECT_LT(trained->epochs.back().loss, trained->epochs.front().loss / 2);
  ASSERT_GE(trained->best_epoch, 1);
  for (const EpochReport& epoch : trained->epochs)
    EXPECT_LE(epoch.held_out_f1,
              trained->epochs[static_cast<std::size_t>(trained->best_epoch - 1)].held_out_f1);
}

TEST(ClassifierTrainingTest, TheSameSeedGivesTheSameWeights) {
  const std::vector<float> embeddings = random_embeddings(1);
  const auto training = texts_of_runs(2, 4), held_out = texts_of_runs(3, 2);
  TrainingOptions options = small_options();
  options.epochs = 3;
  const auto train = [&](std::uint64_t seed) {
    options.seed = seed;
    auto trained = train_classifier({embeddings, training, held_out}, options);
    EXPECT_TRUE(trained.ok());
    return trained->classifier.weights();
  };
  const ClassifierWeights first = train(7), second = train(7), other = train(8);
  EXPECT_EQ(first.projection, second.projection);
  EXPECT_EQ(first.hidden, second.hidden);
  EXPECT_EQ(first.output, second.output);
  EXPECT_NE(first.projection, other.projection);
}

/// The slope of the loss by its definition, for the very first step: with a tiny rate, Adam moves
/// each weight against the sign of its slope.
TEST(ClassifierTrainingTest, TheFirstStepGoesDownhillInEveryArray) {
  const std::vector<float> embeddings = random_embeddings(1);
  const auto training = texts_of_runs(2, 1), held_out = texts_of_runs(3, 1);
  TrainingOptions options = small_options();
  options.weight_decay = 0;
  options.class_weight_power = 0;
  options.batch_chunks = 1000;  // one batch, everything in it
  options.chunks_per_text = 1000;
  options.epochs = 1;
  const auto weights_after = [&](double rate) {
    options.learning_rate = rate;
    auto trained = train_classifier({embeddings, training, held_out}, options);
    EXPECT_TRUE(trained.ok());
    return trained->classifier.weights();
  };
  const auto loss_of = [&](const ClassifierWeights& weights) {
    const RegionClassifier classifier(options.shape, weights);
    const auto scores =
        classifier.log_probabilities(training[0].view(), project_rows(classifier, embeddings));
    double loss = 0;
    for (std::size_t i = 0; i < scores.size(); ++i)
      loss -= double(scores[i][region_index(training[0].labels[i])]);
    return loss / double(scores.size());
  };
  const ClassifierWeights before = weights_after(1e-12), after = weights_after(2e-3);
  using Member = std::vector<float> ClassifierWeights::*;
  for (const Member member :
       {&ClassifierWeights::projection, &ClassifierWeights::hidden, &ClassifierWeights::hidden_bias,
        &ClassifierWeights::output, &ClassifierWeights::output_bias}) {
    std::size_t moved = 0, downhill = 0;
    for (std::size_t i = 0; i < (before.*member).size(); ++i) {
      const float step = (after.*member)[i] - (before.*member)[i];
      ClassifierWeights up = before, down = before;
      const float scale = std::max(1e-3F, std::abs((before.*member)[i]) * 1e-2F);
      (up.*member)[i] += scale;
      (down.*member)[i] -= scale;
      const double slope = loss_of(up) - loss_of(down);
      if (std::abs(slope) < 1e-5) continue;
      ++moved;
      downhill += (slope > 0) == (step < 0) ? 1U : 0U;
    }
    EXPECT_GT(moved, 0U);
    EXPECT_EQ(downhill, moved);
  }
}

TEST(ClassifierTrainingTest, RefusesWhatContradictsItself) {
  const std::vector<float> embeddings = random_embeddings(1);
  const auto good = texts_of_runs(2, 1);
  const auto refused = [&](const TrainingTexts& texts, const TrainingOptions& options) {
    const auto trained = train_classifier(texts, options);
    return !trained.ok() && trained.status().code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused({embeddings, {}, good}, small_options()));
  EXPECT_TRUE(refused({embeddings, good, {}}, small_options()));
  EXPECT_TRUE(refused({std::span(embeddings).subspan(1), good, good}, small_options()));
  auto bad = good;
  bad[0].labels.pop_back();
  EXPECT_TRUE(refused({embeddings, bad, good}, small_options()));
  bad = good;
  bad[0].rows[0] = kRows;
  EXPECT_TRUE(refused({embeddings, bad, good}, small_options()));
  bad[0].rows[0] = -1;
  EXPECT_TRUE(refused({embeddings, good, bad}, small_options()));
  TrainingOptions options = small_options();
  options.epochs = 0;
  EXPECT_TRUE(refused({embeddings, good, good}, options));
}

}  // namespace
}  // namespace memdecay
