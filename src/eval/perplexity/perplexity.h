// Perplexity: how well a model predicts a text, and how far its predictions are from another
// engine's.
//
// The text is cut into chunks of `context` tokens, each computed on its own from position 0, with
// BOS in place of the chunk's first token where the model wants one; the second half of each chunk
// is scored, as llama-perplexity does, so that numbers and files compare. Cost: one forward pass
// over the text, and the output head for every scored position.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/status.h"
#include "engine/engine.h"

namespace memdecay {

struct PerplexityOptions {
  int context = 512;      ///< tokens a chunk, >= 4
  int chunks = -1;        ///< at most this many; -1: all
  std::string base_file;  ///< judge against these predictions (their tokens replace the text)
  std::string save_file;  ///< write ours for another program to judge
  /// Called after each chunk with the chunks done and their number.
  std::function<void(int, int)> on_progress;
};

struct PerplexityResult {
  double perplexity = 0;
  double perplexity_error = 0;  ///< standard error of the perplexity
  std::int64_t scored_tokens = 0;
  int chunks = 0;
  struct Comparison {
    double mean_kl = 0, p99_kl = 0, max_kl = 0, same_top = 0;
  };
  std::optional<Comparison> comparison;  ///< with base_file
};

/// kInvalidArgument for a text shorter than one chunk, or a base file of another vocabulary.
Result<PerplexityResult> measure_perplexity(Engine& engine, std::span<const TokenId> text,
                                            const PerplexityOptions& options);

}  // namespace memdecay
