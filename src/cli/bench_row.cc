#include "cli/bench_row.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numeric>

namespace memdecay {
namespace {

std::int64_t mean_ns(const std::vector<std::int64_t>& samples) {
  return std::accumulate(samples.begin(), samples.end(), std::int64_t{0}) /
         static_cast<std::int64_t>(samples.size());
}

std::int64_t deviation_ns(const std::vector<std::int64_t>& samples) {
  return static_cast<std::int64_t>(summarize_speed({samples.begin(), samples.end()}).deviation);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

}  // namespace

std::string BenchRow::name() const {
  std::string text = speed_case.n_prompt > 0 ? "pp" + std::to_string(speed_case.n_prompt)
                                             : "tg" + std::to_string(speed_case.n_gen);
  if (speed_case.n_depth > 0) text += " @ d" + std::to_string(speed_case.n_depth);
  return text;
}

std::vector<double> BenchRow::tokens_per_second() const {
  std::vector<double> speeds;
  for (const std::int64_t ns : samples_ns)
    speeds.push_back(speed_case.tokens() * 1e9 / static_cast<double>(ns));
  return speeds;
}

double BenchRow::bandwidth_share() const {
  if (bytes_moved == 0 || bandwidth <= 0) return 0;
  return static_cast<double>(bytes_moved) / speed_case.tokens() * median(tokens_per_second()) /
         bandwidth;
}

double BenchRow::ratio() const {
  if (peer_tokens_per_second.empty()) return 0;
  std::vector<double> ratios = tokens_per_second();
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= peer_tokens_per_second[i];
  return median(ratios);
}

nlohmann::ordered_json bench_row_json(const BenchRow& row, const Engine& engine) {
  const SpeedSummary summary = summarize_speed(row.tokens_per_second());
  nlohmann::ordered_json json;
  json["backends"] = "CPU";
  json["model_filename"] = engine.model().path();
  json["model_type"] = engine.model().config().name;
  json["model_size"] = engine.model().tensor_bytes();
  json["model_n_params"] = engine.model().parameters();
  json["n_batch"] = engine.options().batch_tokens;
  json["n_ubatch"] = engine.options().batch_tokens;
  json["n_threads"] = row.threads;
  json["type_k"] = engine.options().precision == Precision::kExact ? "f32" : "f16";
  json["type_v"] = json["type_k"];
  json["n_prompt"] = row.speed_case.n_prompt;
  json["n_gen"] = row.speed_case.n_gen;
  json["n_depth"] = row.speed_case.n_depth;
  json["test_time"] = utc_now();
  json["avg_ns"] = mean_ns(row.samples_ns);
  json["stddev_ns"] = deviation_ns(row.samples_ns);
  json["avg_ts"] = summary.mean;
  json["stddev_ts"] = summary.deviation;
  json["samples_ns"] = row.samples_ns;
  json["samples_ts"] = row.tokens_per_second();
  json["kernels"] = engine.kernels().name;
  json["bytes_moved"] = row.bytes_moved;
  json["bandwidth_bytes_per_second"] = row.bandwidth;
  json["bandwidth_share"] = row.bandwidth_share();
  if (!row.peer_tokens_per_second.empty()) {
    json["peer_samples_ts"] = row.peer_tokens_per_second;
    json["ratio"] = row.ratio();
  }
  return json;
}

void print_bench_table(const std::vector<BenchRow>& rows, const std::string& model) {
  const bool with_peer = std::any_of(rows.begin(), rows.end(), [](const BenchRow& row) {
    return !row.peer_tokens_per_second.empty();
  });
  std::printf("| %-28s | threads | %-16s | %18s | %9s |%s\n", "model", "test", "t/s", "bandwidth",
              with_peer ? "   peer t/s | ratio |" : "");
  std::printf("| %s | ------: | ---------------- | -----------------: | --------: |%s\n",
              std::string(28, '-').c_str(), with_peer ? " ---------: | ----: |" : "");
  for (const BenchRow& row : rows) {
    const SpeedSummary summary = summarize_speed(row.tokens_per_second());
    const std::string share = row.bytes_moved > 0
                                  ? fmt::format("{:.0f} %", 100.0 * row.bandwidth_share())
                                  : std::string("-");
    std::printf("| %-28s | %7d | %-16s | %9.2f +- %5.2f | %9s |", model.c_str(), row.threads,
                row.name().c_str(), summary.mean, summary.deviation, share.c_str());
    if (with_peer)
      std::printf(" %10.2f | %5.2f |", median(row.peer_tokens_per_second), row.ratio());
    std::printf("\n");
  }
}

}  // namespace memdecay
