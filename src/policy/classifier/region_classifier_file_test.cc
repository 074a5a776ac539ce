#include "policy/classifier/region_classifier_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/text_hash.h"

namespace memdecay {
namespace {

ClassifierFile small_file() {
  ClassifierShape shape;
  shape.embedding_width = 5;
  shape.projected_width = 3;
  shape.hidden_width = 4;
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  ClassifierWeights weights = ClassifierWeights::zeros(shape);
  for (std::vector<float>* part : {&weights.projection, &weights.hidden, &weights.hidden_bias,
                                   &weights.output, &weights.output_bias}) {
    for (float& value : *part) value = normal(random);
  }
  ClassifierFile file{"small", 100, probe_tokens(100), {}, RegionClassifier(shape, weights)};
  file.probe_projections.resize(file.probe_tokens.size() * 3);
  for (float& value : file.probe_projections) value = normal(random);
  return file;
}

std::string with_checksum(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  const std::uint64_t sum = text_hash(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), 8);
  return bytes;
}

TEST(RegionClassifierFileTest, ComesBackAsItWasWithinHalfAStep) {
  const ClassifierFile file = small_file();
  const std::string bytes = serialize_classifier(file);
  const auto read = parse_classifier(bytes);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->model, "small");
  EXPECT_EQ(read->vocabulary_size, 100);
  EXPECT_EQ(read->probe_tokens, file.probe_tokens);
  EXPECT_EQ(read->probe_projections, file.probe_projections);
  EXPECT_EQ(read->classifier.shape(), file.classifier.shape());
  const ClassifierWeights &before = file.classifier.weights(), &after = read->classifier.weights();
  EXPECT_EQ(after.hidden_bias, before.hidden_bias);
  EXPECT_EQ(after.output, before.output);
  for (std::size_t column = 0; column < 3; ++column) {
    float largest = 0;
    for (std::size_t i = column; i < before.projection.size(); i += 3)
      largest = std::max(largest, std::abs(before.projection[i]));
    for (std::size_t i = column; i < before.projection.size(); i += 3)
      EXPECT_NEAR(after.projection[i], before.projection[i], largest / 127 * 0.5001F);
  }
  // What was read and written again is the same file: rounding happens once.
  EXPECT_EQ(serialize_classifier(*read), bytes);
}

TEST(RegionClassifierFileTest, EveryCutAndEveryFlippedBitIsRefused) {
  const std::string bytes = serialize_classifier(small_file());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto read = parse_classifier(std::string_view(bytes).substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.status().code(), StatusCode::kCorrupt);
  }
  EXPECT_FALSE(parse_classifier(bytes + '\0').ok());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(parse_classifier(damaged).ok()) << bit;
  }
}

TEST(RegionClassifierFileTest, DamageWithARightChecksumIsSeenToo) {
  const std::string bytes = serialize_classifier(small_file());
  const auto status_with = [&](std::size_t at, auto value) {
    std::string damaged = bytes;
    std::memcpy(damaged.data() + at, &value, sizeof value);
    return parse_classifier(with_checksum(damaged)).status();
  };
  EXPECT_TRUE(parse_classifier(with_checksum(bytes)).ok());
  EXPECT_EQ(status_with(8, std::uint32_t{2}).code(), StatusCode::kUnsupported);
  EXPECT_EQ(status_with(12, std::int32_t{-5}).code(), StatusCode::kCorrupt);
  EXPECT_EQ(status_with(12, std::int32_t{1 << 15}).code(), StatusCode::kCorrupt);
  EXPECT_EQ(status_with(40, std::uint32_t{0xffffffff}).code(), StatusCode::kCorrupt);  // probes
  EXPECT_EQ(status_with(44, std::uint32_t{0xffffffff}).code(), StatusCode::kCorrupt);  // name
  const std::size_t tokens = 48 + 5;
  EXPECT_EQ(status_with(tokens, std::int32_t{100}).code(), StatusCode::kCorrupt);
  EXPECT_EQ(status_with(tokens + 64, std::numeric_limits<float>::quiet_NaN()).code(),
            StatusCode::kCorrupt);
  EXPECT_EQ(status_with(bytes.size() - 12, std::numeric_limits<float>::infinity()).code(),
            StatusCode::kCorrupt);
}

TEST(RegionClassifierFileTest, ProbesTellTheModelFromAStranger) {
  ClassifierFile file = small_file();
  const std::size_t probes = file.probe_tokens.size();
  ASSERT_EQ(probes, 16U);
  EXPECT_EQ(file.probe_tokens.front(), 0);
  EXPECT_EQ(file.probe_tokens.back(), 93);
  std::mt19937 random(12);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  std::vector<float> own(probes * 5), noisy, stranger(probes * 5);
  for (float& value : own) value = normal(random);
  noisy = own;
  for (float& value : noisy) value = 3.0F * value * (1.0F + 0.05F * normal(random));
  for (float& value : stranger) value = normal(random);
  for (std::size_t p = 0; p < probes; ++p)
    file.classifier.project(std::span(own).subspan(p * 5, 5),
                            std::span(file.probe_projections).subspan(p * 3, 3));
  EXPECT_NEAR(probe_likeness(file, own), 1.0, 1e-6);
  EXPECT_GT(probe_likeness(file, noisy), kLeastProbeLikeness);
  EXPECT_LT(probe_likeness(file, stranger), 0.6);
  EXPECT_EQ(probe_likeness(file, std::span(own).subspan(5)), 0.0);
  EXPECT_EQ(probe_tokens(3), (std::vector<TokenId>{0, 1, 2}));
}

}  // namespace
}  // namespace memdecay
