#include "eval/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"
#include "core/seeded_random.h"

namespace memdecay {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

nlohmann::ordered_json finite_or_null(double number) {
  return std::isfinite(number) ? nlohmann::ordered_json(number) : nlohmann::ordered_json();
}

/// A sample of some episode.
struct Sample {
  double value;
  std::size_t episode;
};

/// The q-quantile of sorted samples, each as often as its episode was drawn.
double weighted_quantile(std::span<const Sample> sorted, std::span<const std::int32_t> times,
                         double q) {
  std::int64_t count = 0;
  for (const Sample& sample : sorted) count += times[sample.episode];
  if (count == 0) return kNothing;
  const double place = q * static_cast<double>(count - 1);
  const auto low = static_cast<std::int64_t>(place);
  const std::int64_t high = std::min(low + 1, count - 1);
  double low_value = kNothing;
  std::int64_t passed = 0;
  for (const Sample& sample : sorted) {
    const std::int64_t next = passed + times[sample.episode];
    if (passed <= low && low < next) low_value = sample.value;
    if (passed <= high && high < next) {
      return low_value + (place - static_cast<double>(low)) * (sample.value - low_value);
    }
    passed = next;
  }
  return kNothing;
}

}  // namespace

nlohmann::ordered_json metric_json(const Metric& metric) {
  return {{"value", finite_or_null(metric.value)},
          {"low", finite_or_null(metric.low)},
          {"high", finite_or_null(metric.high)},
          {"n", metric.n}};
}

Metric bootstrap(std::size_t units, const ResampledStatistic& statistic,
                 const BootstrapOptions& options) {
  Metric metric{kNothing, kNothing, kNothing, static_cast<std::int64_t>(units)};
  if (units == 0) return metric;
  std::vector<std::int32_t> times(units, 1);
  metric.value = statistic(times);
  SeededRandom random(options.seed);
  std::vector<double> drawn;
  for (int i = 0; i < options.resamples; ++i) {
    std::fill(times.begin(), times.end(), 0);
    for (std::size_t unit = 0; unit < units; ++unit) ++times[random.below(units)];
    const double value = statistic(times);
    if (std::isfinite(value)) drawn.push_back(value);
  }
  const double tail = (1.0 - options.confidence) / 2.0;
  metric.low = quantile_of(drawn, tail);
  metric.high = quantile_of(std::move(drawn), 1.0 - tail);
  return metric;
}

Metric bootstrap_ratio(std::span<const EpisodeSum> episodes, const BootstrapOptions& options) {
  std::vector<EpisodeSum> counted;
  for (const EpisodeSum& episode : episodes) {
    if (episode.denominator > 0) counted.push_back(episode);
  }
  const auto ratio = [&](std::span<const std::int32_t> times) {
    double numerator = 0, denominator = 0;
    for (std::size_t i = 0; i < counted.size(); ++i) {
      numerator += times[i] * counted[i].numerator;
      denominator += times[i] * counted[i].denominator;
    }
    return denominator > 0 ? numerator / denominator : kNothing;
  };
  return bootstrap(counted.size(), ratio, options);
}

Metric bootstrap_quantile(std::span<const std::vector<double>> episodes, double q,
                          const BootstrapOptions& options) {
  MEMDECAY_CHECK(q >= 0.0 && q <= 1.0);
  std::vector<Sample> samples;
  std::size_t counted = 0;
  for (const std::vector<double>& episode : episodes) {
    for (const double value : episode) samples.push_back({value, counted});
    counted += episode.empty() ? 0U : 1U;
  }
  std::sort(samples.begin(), samples.end(),
            [](const Sample& a, const Sample& b) { return a.value < b.value; });
  const auto quantile = [&](std::span<const std::int32_t> times) {
    return weighted_quantile(samples, times, q);
  };
  return bootstrap(counted, quantile, options);
}

double quantile_of(std::vector<double> values, double q) {
  MEMDECAY_CHECK(q >= 0.0 && q <= 1.0);
  if (values.empty()) return kNothing;
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace memdecay
