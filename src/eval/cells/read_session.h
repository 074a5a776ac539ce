// ReadSession: a chained session as one model reads it: tokens, labels, and what is judged.
//
// Rendered once by the model's own template (runs/template_fit.h), labelled by the rules, or with a
// share of the labels noised. Plain values; any thread. Cost: one rendering and its labels.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/memory/prompt_labels.h"
#include "engine/prompt/prompt.h"
#include "eval/metrics/action_values.h"
#include "eval/runs/chained_session.h"
#include "eval/runs/message_tokens.h"

namespace memdecay {

struct ReadSession {
  Prompt prompt;
  PromptLabels labels;                 ///< with noise, where it is asked for
  std::vector<RegionSpan> regions;     ///< of the labels before the noise
  std::vector<MessageExtent> extents;  ///< [messages]
  std::vector<std::uint8_t> judged;    ///< [tokens]: the assistant wrote it
  std::vector<std::int32_t> episode;   ///< [tokens]
  std::vector<ActionPiece> pieces;
  std::int32_t episodes = 0;
  Position protected_tokens = 0;  ///< system text at the start
};

/// `label_noise` is the share of region spans that are labelled wrong, drawn from `seed`.
Result<ReadSession> read_session(const Model& model, const ChainedSession& session,
                                 double label_noise, std::uint64_t seed);

}  // namespace memdecay
