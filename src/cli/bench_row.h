// One row of `memdecay bench`: a case at a number of threads, with its samples, and how it prints.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "eval/speed/speed.h"

namespace memdecay {

struct BenchRow {
  SpeedCase speed_case;
  int threads = 0;
  std::vector<std::int64_t> samples_ns;
  std::vector<double> peer_tokens_per_second;  ///< one a sample, when there is a peer
  double bandwidth = 0;                        ///< bytes a second that the probe read beside it
  std::uint64_t bytes_moved = 0;               ///< by one repetition

  /// "pp512", "tg128 @ d4096", as llama-bench names tests.
  std::string name() const;
  std::vector<double> tokens_per_second() const;
  /// Share of the probed bandwidth that the median repetition reached; 0 for prompts.
  double bandwidth_share() const;
  /// Median of ours / peer's over the pairs; 0 without a peer.
  double ratio() const;
};

/// llama-bench's fields and names, then ours.
nlohmann::ordered_json bench_row_json(const BenchRow& row, const Engine& engine);
void print_bench_table(const std::vector<BenchRow>& rows, const std::string& model);

}  // namespace memdecay
