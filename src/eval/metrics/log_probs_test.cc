#include "eval/metrics/log_probs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/log_softmax.h"

namespace memdecay {
namespace {

std::vector<float> random_logits(int count, float spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(3.0F, spread);
  std::vector<float> logits(static_cast<std::size_t>(count));
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::vector<float> round_trip(const std::vector<float>& logits) {
  std::vector<std::uint16_t> record(log_prob_record_words(static_cast<int>(logits.size())), 0xAAAA);
  encode_log_probs(logits, record);
  std::vector<float> log_probs(logits.size());
  decode_log_probs(record, log_probs);
  return log_probs;
}

TEST(LogProbsTest, RecordsAreTwoFloatsAndAnEvenNumberOfCodes) {
  EXPECT_EQ(log_prob_record_words(1), 6U);
  EXPECT_EQ(log_prob_record_words(2), 6U);
  EXPECT_EQ(log_prob_record_words(3), 8U);
  EXPECT_EQ(log_prob_record_words(49152), 49156U);
}

TEST(LogProbsTest, RoundTripIsWithinHalfAStep) {
  for (const int count : {2, 3, 50, 1001}) {
    for (const float spread : {0.01F, 1.0F, 2.0F}) {
      const auto logits = random_logits(count, spread, static_cast<std::uint32_t>(count));
      std::vector<double> exact(logits.size());
      log_softmax(logits, exact);
      const auto read = round_trip(logits);
      const auto [low, high] = std::minmax_element(logits.begin(), logits.end());
      const double half_step = std::min(16.0F, *high - *low) / 65535.0 / 2;
      for (std::size_t i = 0; i < logits.size(); ++i)
        EXPECT_NEAR(read[i], exact[i], half_step + 3e-6) << count << " logits, number " << i;
    }
  }
}

TEST(LogProbsTest, WhatIsDeeperThanSixteenBelowTheLargestIsFlat) {
  const std::vector<float> logits = {40.0F, 24.0F, 23.9F, 0.0F, -1e30F, 32.0F};
  const auto read = round_trip(logits);
  EXPECT_NEAR(read[0], -std::log1p(std::exp(-8.0)), 2e-4);
  for (const std::size_t deep : {1U, 2U, 3U, 4U}) EXPECT_NEAR(read[deep], read[0] - 16.0F, 1e-4);
  EXPECT_LE(read[3], kLogProbFloor) << "a flat entry carries no information";
  EXPECT_NEAR(read[5], read[0] - 8.0F, 2e-4);
}

TEST(LogProbsTest, EqualLogitsAndASingleOne) {
  const auto read = round_trip(std::vector<float>(4, -7.5F));
  for (const float value : read) EXPECT_FLOAT_EQ(value, std::log(0.25F));
  EXPECT_FLOAT_EQ(round_trip({123.0F})[0], 0.0F);
}

}  // namespace
}  // namespace memdecay
