// Bootstrap: how sure a number is, by drawing the episodes again.
//
// Units (episodes, sessions) are drawn with replacement; the statistic of each draw gives the
// percentile interval. Tokens of one episode are not independent, so tokens are never the unit.
// Seeded: the same input gives the same interval everywhere. Pure, any thread.
// Cost: resamples * cost of the statistic.
// Source: Efron 1979, the percentile interval.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace memdecay {

/// A number with its interval; not finite where nothing was measured.
struct Metric {
  double value = 0;
  double low = 0;
  double high = 0;
  std::int64_t n = 0;  ///< units that it stands on
};

/// {"value", "low", "high", "n"}; null for what is not finite.
nlohmann::ordered_json metric_json(const Metric& metric);

struct BootstrapOptions {
  int resamples = 1000;
  double confidence = 0.95;
  std::uint64_t seed = 1;
};

/// The statistic of units where unit i counts times[i]; called with ones first. A draw whose
/// statistic is not finite (nothing in it to measure) is left out of the interval.
using ResampledStatistic = std::function<double(std::span<const std::int32_t> times)>;
Metric bootstrap(std::size_t units, const ResampledStatistic& statistic,
                 const BootstrapOptions& options = {});

/// What one episode contributes to a ratio: sum of losses and tokens, right answers and questions.
struct EpisodeSum {
  double numerator = 0;
  double denominator = 0;
};
/// sum of numerators / sum of denominators. Episodes without a denominator do not count in n.
Metric bootstrap_ratio(std::span<const EpisodeSum> episodes, const BootstrapOptions& options = {});

/// The q-quantile of all episodes' samples together. REQUIRES: 0 <= q <= 1.
Metric bootstrap_quantile(std::span<const std::vector<double>> episodes, double q,
                          const BootstrapOptions& options = {});

/// The q-quantile of sorted or unsorted values, linear between neighbours (p50, p95, p99 of
/// latencies). NaN for none. REQUIRES: 0 <= q <= 1.
double quantile_of(std::vector<double> values, double q);

}  // namespace memdecay
