#include "eval/metrics/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/seeded_random.h"

namespace memdecay {
namespace {

TEST(SeededRandom, IsSplitMix64) {
  SeededRandom random(1234567);  // the first values of the published reference code
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
}

TEST(Bootstrap, ARatioIsSumsOverSums) {
  const std::vector<EpisodeSum> episodes = {{1, 10}, {0, 0}, {30, 90}};
  const Metric metric = bootstrap_ratio(episodes);
  EXPECT_DOUBLE_EQ(metric.value, 0.31);
  EXPECT_EQ(metric.n, 2);
  // Of two episodes: both the first, both the second, or each once.
  EXPECT_DOUBLE_EQ(metric.low, 0.1);
  EXPECT_DOUBLE_EQ(metric.high, 1.0 / 3.0);
}

TEST(Bootstrap, EqualEpisodesLeaveNoDoubt) {
  const std::vector<EpisodeSum> episodes(20, EpisodeSum{3, 4});
  const Metric metric = bootstrap_ratio(episodes);
  EXPECT_DOUBLE_EQ(metric.low, 0.75);
  EXPECT_DOUBLE_EQ(metric.high, 0.75);
}

TEST(Bootstrap, TheIntervalOfAMeanIsTheNormalOnes) {
  std::vector<EpisodeSum> episodes;
  SeededRandom random(5);
  double sum = 0, squares = 0;
  for (int i = 0; i < 400; ++i) {
    const double value = random.unit() + random.unit() + random.unit();
    episodes.push_back({value, 1});
    sum += value;
    squares += value * value;
  }
  const double mean = sum / 400, deviation = std::sqrt(squares / 400 - mean * mean);
  BootstrapOptions options;
  options.resamples = 4000;
  const Metric metric = bootstrap_ratio(episodes, options);
  EXPECT_NEAR(metric.value, mean, 1e-12);
  EXPECT_NEAR(metric.low, mean - 1.96 * deviation / 20, 0.005);
  EXPECT_NEAR(metric.high, mean + 1.96 * deviation / 20, 0.005);
}

TEST(Bootstrap, SeedsDecide) {
  const std::vector<EpisodeSum> episodes = {{1, 10}, {3, 7}, {30, 90}, {2, 3}, {0, 5}};
  BootstrapOptions options;
  options.resamples = 37;
  const Metric first = bootstrap_ratio(episodes, options);
  EXPECT_EQ(first.low, bootstrap_ratio(episodes, options).low);
  options.seed = 2;
  EXPECT_NE(first.low, bootstrap_ratio(episodes, options).low);
}

TEST(Bootstrap, NothingMeasuredIsNull) {
  const Metric metric = bootstrap_ratio({});
  EXPECT_TRUE(std::isnan(metric.value));
  EXPECT_EQ(metric_json(metric).dump(), R"({"value":null,"low":null,"high":null,"n":0})");
  EXPECT_EQ(metric_json({0.5, 0.25, 1.0, 3}).dump(),
            R"({"value":0.5,"low":0.25,"high":1.0,"n":3})");
}

TEST(Bootstrap, QuantilesCountSamplesAsOftenAsTheirEpisode) {
  const std::vector<std::vector<double>> one = {{5, 1, 4, 2, 3}};
  EXPECT_DOUBLE_EQ(bootstrap_quantile(one, 0.5).value, 3);
  EXPECT_DOUBLE_EQ(bootstrap_quantile(one, 0.9).value, 4.6);
  EXPECT_DOUBLE_EQ(bootstrap_quantile(one, 0.9).low, 4.6);  // drawn twice it is the same
  const std::vector<std::vector<double>> two = {{1, 1, 1}, {}, {9}};
  const Metric metric = bootstrap_quantile(two, 1.0);
  EXPECT_DOUBLE_EQ(metric.value, 9);
  EXPECT_DOUBLE_EQ(metric.low, 1);
  EXPECT_EQ(metric.n, 2);
}

TEST(Bootstrap, WeightedQuantilesEqualThoseOfTheRepeatedList) {
  SeededRandom random(3);
  std::vector<std::vector<double>> episodes(4);
  for (auto& episode : episodes) {
    for (int i = 0; i < 7; ++i) episode.push_back(std::floor(random.unit() * 10));
  }
  for (const double q : {0.0, 0.25, 0.5, 0.95, 1.0}) {
    std::vector<double> all;
    for (const auto& episode : episodes) all.insert(all.end(), episode.begin(), episode.end());
    EXPECT_DOUBLE_EQ(bootstrap_quantile(episodes, q).value, quantile_of(all, q)) << q;
  }
}

TEST(Quantile, IsLinearBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile_of({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(quantile_of({0, 10}, 0.99), 9.9);
  EXPECT_DOUBLE_EQ(quantile_of({7}, 0.3), 7);
  EXPECT_TRUE(std::isnan(quantile_of({}, 0.3)));
}

}  // namespace
}  // namespace memdecay
