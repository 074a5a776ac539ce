// GoldenFile: what an independent engine predicts for a GGUF file and a run of tokens, as
// tests/golden/golden_file.py writes it (its head is the specification of the bytes).
//
// Every chunk of `n_ctx` tokens is evaluated from an empty cache; positions first_scored .. n_ctx -
// 2 are scored. A position lists the likeliest ids with their natural log-probabilities, and the
// mass of all other ids as one bucket. The KL computed here is over these buckets: a lower bound of
// the whole KL, equal to it when the whole vocabulary is listed. Immutable after read(); any
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace memdecay {

/// How one position's logits compare with the reference.
struct GoldenVerdict {
  double kl = 0;                  ///< of the reference to the candidate, in nats
  bool same_top = false;          ///< both prefer the same id
  double target_log_prob = 0;     ///< the candidate's, of the token that follows in the text
  double largest_difference = 0;  ///< of a listed log-probability
};

class GoldenFile {
 public:
  /// Fails with kNotFound, or kCorrupt when the bytes are not a golden file.
  static Result<GoldenFile> read(const std::string& path);

  const std::array<std::byte, 32>& model_sha256() const { return model_sha256_; }
  int n_ctx() const { return n_ctx_; }
  int n_vocab() const { return n_vocab_; }
  int n_chunks() const { return n_chunks_; }
  int first_scored() const { return first_scored_; }
  int scored_per_chunk() const { return n_ctx_ - 1 - first_scored_; }
  /// The tokens to evaluate, BOS included. REQUIRES: 0 <= chunk < n_chunks().
  std::span<const std::int32_t> chunk_tokens(int chunk) const;

  /// Judges the logits (any additive constant) at position first_scored() + offset of `chunk`.
  /// REQUIRES: 0 <= offset < scored_per_chunk(), logits.size() == n_vocab(). O(n_vocab).
  GoldenVerdict judge(int chunk, int offset, std::span<const float> logits) const;
  /// exp of the mean negative log-probability of the text under the reference.
  double reference_perplexity() const;

 private:
  Status parse(std::span<const std::byte> content);

  std::array<std::byte, 32> model_sha256_{};
  int n_ctx_ = 0;
  int n_vocab_ = 0;
  int n_chunks_ = 0;
  int first_scored_ = 0;
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> starts_;  ///< of each position's entries; one more than positions
  std::vector<float> target_log_prob_;
  std::vector<float> rest_log_prob_;
  std::vector<std::uint32_t> ids_;
  std::vector<float> log_probs_;
};

/// Sums verdicts up to the numbers that thresholds.json speaks of.
class GoldenSummary {
 public:
  void add(const GoldenVerdict& verdict);
  std::size_t count() const { return kls_.size(); }
  double mean_kl() const;
  /// The `fraction` quantile by linear interpolation at fraction * (count - 1). REQUIRES: count() >
  /// 0.
  double kl_quantile(double fraction) const;
  double same_top() const;
  double perplexity() const;
  double largest_difference() const { return largest_difference_; }

 private:
  std::vector<double> kls_;
  std::size_t same_top_ = 0;
  double log_prob_sum_ = 0;
  double largest_difference_ = 0;
};

}  // namespace memdecay
