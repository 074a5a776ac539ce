// Lockstep: one recorded session through several memories at once, token by token the same.
//
// The first memory is the reference (nothing is ever forgotten); the others live under a policy and
// a budget. All get the same tokens in the same passes, so the weights are read once for all and
// what differs between them is memory alone. While the assistant's tokens are forced, the logits of
// every memory stand beside the reference's: streaming, as eviction would happen.
// One thread, the engine's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/memory/prompt_labels.h"

namespace memdecay {

/// What the reference and one memory say about one token that the assistant really wrote.
struct ComparedToken {
  std::size_t memory = 0;  ///< counts from 0 among those beside the reference
  Position position = 0;   ///< of the token
  TokenId token = 0;
  std::span<const float> reference_logits;
  std::span<const float> logits;
};

/// Most tokens of a memory in one pass, so that eviction has its say as often. Evidence is taken of
/// a pass's last query, so what the assistant writes goes in small ones: it would be written token
/// by token.
struct PassTokens {
  int read = 32;
  int written = 4;
};

class Lockstep {
 public:
  using OnToken = std::function<void(const ComparedToken&)>;
  /// Called after every pass; what is not ok ends the play.
  using OnPass = std::function<Status()>;

  /// Opens the sessions. The engine outlives this.
  static Result<std::unique_ptr<Lockstep>> open(Engine& engine,
                                                std::span<const SessionOptions> memories);

  /// The same memories once more, of their first `tokens` tokens; what it plays is not seen here.
  /// kResourceExhausted where a fork finds no room.
  Result<std::unique_ptr<Lockstep>> fork(std::size_t tokens) const;

  /// Plays labelled tokens behind those that were played, labels of all of them; `judged` is
  /// [tokens]: 1 where the assistant wrote the token.
  Status play(std::span<const TokenId> tokens, const PromptLabels& labels,
              std::span<const std::uint8_t> judged, const PassTokens& most, const OnToken& on_token,
              const OnPass& on_pass);

  /// Evicts once, for memories that do only when they are asked: Engine::shrink().
  Status shrink(std::size_t memory, std::uint64_t bytes);

  const Session& session(std::size_t memory) const { return *sessions_[memory + 1]; }

 private:
  explicit Lockstep(Engine& engine) : engine_(engine) {}
  Status play_run(std::span<const TokenId> tokens, TokenId next, bool judged,
                  const OnToken& on_token);

  Engine& engine_;
  std::vector<std::unique_ptr<Session>> sessions_;  ///< the reference first
  std::vector<Session*> pointers_;
  std::vector<std::vector<float>> reference_;  ///< logits of a run's tokens
  bool answered_ = false;                      ///< what comes next is another turn
};

}  // namespace memdecay
