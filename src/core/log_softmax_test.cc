#include "core/log_softmax.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace memdecay {
namespace {

TEST(LogSoftmax, OfLargeNumbers) {
  const std::vector<float> logits = {1e4F, 1e4F, -1e4F};
  std::vector<double> log_probs(3);
  log_softmax(logits, log_probs);
  EXPECT_NEAR(log_probs[0], -std::log(2.0), 1e-12);
  EXPECT_NEAR(log_probs[2], -2e4 - std::log(2.0), 1e-6);
}

TEST(LogSoftmax, InPlaceIsTheSameRounded) {
  std::array<float, 4> values = {-3.5F, 0.25F, 7.0F, 6.875F};
  std::array<double, 4> exact = {};
  log_softmax(values, exact);
  log_softmax(values, std::span<float>(values));
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], static_cast<float>(exact[i]));
    sum += std::exp(exact[i]);
  }
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(LogSoftmax, ASingleLogitIsCertain) {
  std::array<double, 1> log_probs = {5};
  log_softmax(std::array<float, 1>{-80.0F}, log_probs);
  EXPECT_EQ(log_probs[0], 0.0);
}

}  // namespace
}  // namespace memdecay
