// What a caller asks the engine to generate, and what it gets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/id.h"
#include "core/status.h"
#include "engine/memory/prompt_labels.h"
#include "kv/prefix/prefix_difference.h"
#include "model/sampler/sampler.h"

namespace memdecay {

class Session;

using RequestId = StrongId<struct RequestTag, std::int64_t>;

enum class FinishReason : std::uint8_t {
  kStop,    ///< the model ended its turn
  kLength,  ///< max_new_tokens, or the context is full
  kCancelled,
  kNoMemory,  ///< the KV budget has no room; the session keeps what it holds
  kFailed,    ///< see GenerationResult::status
};

struct GenerationResult {
  FinishReason reason = FinishReason::kStop;
  Status status;                ///< one sentence for kNoMemory and kFailed
  std::vector<TokenId> tokens;  ///< generated, without the end token
  std::string text;             ///< what they say; invalid UTF-8 has become U+FFFD
  TokenId end_token = -1;       ///< the end token that stopped it, or -1
  int prompt_tokens = 0;
  int reused_tokens = 0;            ///< of the prompt, not computed: found in session or prefixes
  int cached_tokens = 0;            ///< of those, taken from prefixes that other sessions left
  PrefixDifference miss;            ///< why it was not more
  int computed_tokens = 0;          ///< rows of forward passes spent on this request
  int recomputed_tokens = 0;        ///< of the prompt: computed a second time, not reused
  std::int64_t evicted_tokens = 0;  ///< of its session, while it ran
  std::int64_t prompt_ns = 0;       ///< from submission to the first token
  std::int64_t decode_ns = 0;       ///< from the first token to the last
  std::vector<std::int64_t>
      step_ns;  ///< between a token and the one before, [tokens - 1] and the end
};

struct GenerationRequest {
  Session* session = nullptr;   ///< outlives the request; one request at a time
  std::vector<TokenId> prompt;  ///< the whole conversation as tokens, history included; not empty
  PromptLabels labels;          ///< what the prompt's tokens are; empty: all recent dialogue
  int max_new_tokens = 256;     ///< >= 0; the context may end the answer before
  SamplingOptions sampling;
  bool ignore_end = false;  ///< go on after end tokens (benchmarks)
  /// Called on the engine's thread as text comes: whole characters only, the rest is flushed at the
  /// end. May be empty.
  std::function<void(const std::string&)> on_text;
  /// Called once, on the engine's thread, when the request is over. May be empty.
  std::function<void(const GenerationResult&)> on_done;
};

}  // namespace memdecay
