// Speed: tokens a second of prompts and of decoding, at any depth, measured as llama-bench measures
// them.
//
// A case is a prompt (n_prompt tokens in batches) or decoding (n_gen tokens one by one, output head
// included), after n_depth tokens that are computed once and not timed. Every repetition starts
// from a fork of that session. Tokens are pseudo-random: speed does not depend on them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/status.h"
#include "engine/engine.h"

namespace memdecay {

struct SpeedCase {
  int n_prompt = 0;  ///< exactly one of n_prompt and n_gen is > 0
  int n_gen = 0;
  int n_depth = 0;
  int tokens() const { return n_prompt + n_gen; }
};

class SpeedRun {
 public:
  /// Computes the depth and one untimed warm-up. kResourceExhausted when the KV budget cannot hold
  /// it; kInvalidArgument when the context cannot.
  static Result<std::unique_ptr<SpeedRun>> prepare(Engine& engine, const SpeedCase& speed_case);

  /// Nanoseconds of one repetition.
  Result<std::int64_t> repeat();
  /// Bytes that the timed part of one repetition of decoding must read: weights once a token, keys
  /// and values so far in the forms they have. 0 for prompts, which are not bound by memory.
  std::uint64_t bytes_moved() const;

 private:
  SpeedRun(Engine& engine, const SpeedCase& speed_case) : engine_(engine), case_(speed_case) {}
  Status decode(Session& session, int tokens);
  TokenId next_token();

  Engine& engine_;
  SpeedCase case_;
  std::unique_ptr<Session> base_;
  std::uint32_t random_ = 1;
};

/// Mean and standard deviation (n - 1) of tokens a second.
struct SpeedSummary {
  double mean = 0;
  double deviation = 0;
};
SpeedSummary summarize_speed(const std::vector<double>& tokens_per_second);
/// The middle value, or the mean of the two middle ones. REQUIRES: not empty.
double median(std::vector<double> values);

}  // namespace memdecay
