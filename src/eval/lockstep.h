// Lockstep: one recorded session through several memories at once, token by token the same.
//
// The first memory is the reference (nothing is ever forgotten); the others live under a policy and
// a budget. All get the same tokens in the same passes, so the weights are read once for all and
// what differs between them is memory alone. While the assistant's tokens are forced, the logits of
// every memory are compared with the reference's: streaming, as eviction would happen.
// One thread, the engine's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/prompt.h"
#include "engine/prompt_labels.h"

namespace memdecay {

/// What one memory said about one token that the assistant really wrote.
struct TokenJudgement {
  int position = 0;            ///< of the token
  double kl = 0;               ///< KL(reference || memory) of the distribution it was drawn from
  double log_probability = 0;  ///< of the token
  bool same_top = false;       ///< the most likely token is the reference's
  bool right = false;          ///< the most likely token is this one
  bool reference_right = false;
};

class Lockstep {
 public:
  /// `memory` counts from 0 among those beside the reference.
  using OnToken = std::function<void(std::size_t memory, const TokenJudgement& judgement)>;

  /// Opens the sessions. The engine outlives this.
  static Result<std::unique_ptr<Lockstep>> open(Engine& engine,
                                                std::span<const SessionOptions> memories);

  /// Plays a whole labelled prompt; `judged` is [tokens]: 1 where the assistant wrote the token.
  /// Passes hold at most `chunk` tokens a memory, so that eviction has its say as often.
  Status play(const Prompt& prompt, const PromptLabels& labels,
              std::span<const std::uint8_t> judged, int chunk, const OnToken& on_token);

  const Session& session(std::size_t memory) const { return *sessions_[memory + 1]; }
  const Session& reference() const { return *sessions_[0]; }

 private:
  explicit Lockstep(Engine& engine) : engine_(engine) {}
  Status play_run(std::span<const TokenId> tokens, TokenId next, bool judged,
                  const OnToken& on_token);

  Engine& engine_;
  std::vector<std::unique_ptr<Session>> sessions_;  ///< the reference first
  std::vector<Session*> pointers_;
};

}  // namespace memdecay
