#include "model/sampler/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

namespace memdecay {
namespace {

SamplingOptions plain(float temperature) {
  SamplingOptions options;
  options.temperature = temperature;
  options.top_k = 0;
  options.top_p = 1.0F;
  options.min_p = 0.0F;
  options.seed = 7;
  return options;
}

std::map<TokenId, int> histogram(const SamplingOptions& options, const std::vector<float>& logits,
                                 int draws) {
  Sampler sampler(options, scalar_kernels());
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits)];
  return counts;
}

TEST(Sampler, ZeroTemperatureTakesTheLargestAndTheLowestIdOnATie) {
  Sampler sampler(plain(0.0F), scalar_kernels());
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 5, 5, 2}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-3}), 0);
}

TEST(Sampler, DrawsInProportionWithoutTruncation) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  const auto counts = histogram(plain(1.0F), logits, 20000);
  EXPECT_NEAR(counts.at(0), 10000, 400);
  EXPECT_NEAR(counts.at(1), 6000, 400);
  EXPECT_NEAR(counts.at(2), 4000, 400);
}

TEST(Sampler, EachTruncationCutsTheTail) {
  const std::vector<float> logits = {std::log(0.2F), std::log(0.5F), std::log(0.05F),
                                     std::log(0.25F)};
  SamplingOptions options = plain(1.0F);
  options.top_k = 2;
  EXPECT_EQ(histogram(options, logits, 500).size(), 2u);
  options = plain(1.0F);
  options.top_p = 0.7F;  // 0.5 + 0.25 reach it
  EXPECT_EQ(histogram(options, logits, 500).size(), 2u);
  options = plain(1.0F);
  options.min_p = 0.45F;  // 0.45 * 0.5 lies between 0.2 and 0.25
  EXPECT_EQ(histogram(options, logits, 500).size(), 2u);
}

TEST(Sampler, TopPLooksBeyondTheFirstCandidates) {
  const std::vector<float> flat(5000, 1.0F);  // the mass of 0.9 needs 4,500 of them
  SamplingOptions options = plain(1.0F);
  options.top_p = 0.9F;
  const auto counts = histogram(options, flat, 4000);
  EXPECT_GT(counts.rbegin()->first, 4000);
  EXPECT_LT(counts.rbegin()->first, 4501);
}

TEST(Sampler, SameSeedSameTokens) {
  std::vector<float> logits(300);
  std::iota(logits.begin(), logits.end(), -150.0F);
  for (float& value : logits) value *= 0.02F;
  SamplingOptions options;
  options.seed = 42;
  Sampler a(options, scalar_kernels()), b(options, scalar_kernels());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.sample(logits), b.sample(logits));
}

TEST(SamplingOptions, NamesTheFieldThatIsOutOfRange) {
  SamplingOptions options;
  options.top_p = 0.0F;
  EXPECT_NE(options.validate().message().find("top_p"), std::string::npos);
  options = SamplingOptions();
  options.min_p = 1.5F;
  EXPECT_NE(options.validate().message().find("min_p"), std::string::npos);
  options = SamplingOptions();
  options.temperature = NAN;
  EXPECT_FALSE(options.validate().ok());
}

}  // namespace
}  // namespace memdecay
