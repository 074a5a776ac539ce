#include "eval/metrics/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/log_softmax.h"
#include "eval/metrics/log_probs.h"

namespace memdecay {
namespace {

std::vector<double> random_log_probs(int count, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0F, 2.0F);
  std::vector<float> logits(static_cast<std::size_t>(count));
  for (float& logit : logits) logit = normal(random);
  std::vector<double> log_probs(logits.size());
  log_softmax(logits, log_probs);
  return log_probs;
}

TEST(DivergenceTest, FollowsTheDefinition) {
  std::mt19937 random(3);
  Divergence divergence;
  std::vector<double> kl;
  int same = 0;
  for (int position = 0; position < 37; ++position) {
    const auto base = random_log_probs(20, random);
    auto ours = random_log_probs(20, random);
    if (position % 5 == 0) ours = base;
    double sum = 0;
    for (std::size_t i = 0; i < base.size(); ++i) sum += std::exp(base[i]) * (base[i] - ours[i]);
    kl.push_back(sum);
    same += std::max_element(base.begin(), base.end()) - base.begin() ==
                    std::max_element(ours.begin(), ours.end()) - ours.begin()
                ? 1
                : 0;
    divergence.add(std::vector<float>(base.begin(), base.end()), ours, -1e9F);
  }
  std::sort(kl.begin(), kl.end());
  double mean = 0;
  for (const double value : kl) mean += value / 37;
  EXPECT_EQ(divergence.positions(), 37U);
  EXPECT_NEAR(divergence.mean_kl(), mean, 1e-6);
  EXPECT_NEAR(divergence.max_kl(), kl.back(), 1e-6);
  EXPECT_NEAR(divergence.quantile_kl(0.0), kl.front(), 1e-6);
  EXPECT_NEAR(divergence.quantile_kl(0.5), kl[18], 1e-6);
  EXPECT_NEAR(divergence.quantile_kl(0.99), kl[35] + 0.64 * (kl[36] - kl[35]), 1e-6);
  EXPECT_NEAR(divergence.quantile_kl(1.0), kl.back(), 1e-6);
  EXPECT_DOUBLE_EQ(divergence.same_top(), same / 37.0);
}

TEST(DivergenceTest, WhatTheBaseFlattenedIsLeftOut) {
  Divergence divergence;
  const std::vector<float> base = {std::log(0.5F), std::log(0.5F), -16.0F};
  const std::vector<double> ours = {std::log(0.25), std::log(0.75), -1000.0};
  divergence.add(base, ours, kLogProbFloor);
  EXPECT_NEAR(divergence.mean_kl(), 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3.0), 1e-6);
}

TEST(DivergenceTest, OfEqualLogitsTheFirstIsTheTop) {
  Divergence divergence;
  divergence.add(std::vector<float>{-1.0F, -0.5F, -0.5F}, std::vector<double>{-1, -0.5, -0.5}, -16);
  divergence.add(std::vector<float>{-1.0F, -0.5F, -0.5F}, std::vector<double>{-1, -0.6, -0.5}, -16);
  EXPECT_DOUBLE_EQ(divergence.same_top(), 0.5);
}

TEST(DivergenceTest, NothingMeasuredIsZero) {
  const Divergence divergence;
  EXPECT_EQ(divergence.mean_kl(), 0.0);
  EXPECT_EQ(divergence.max_kl(), 0.0);
  EXPECT_EQ(divergence.same_top(), 0.0);
}

}  // namespace
}  // namespace memdecay
