// Lockstep: one recorded session through several memories at once, token by token the same.
//
// The first memory is the reference (nothing is ever forgotten); the others live under a policy and
// a budget. All get the same tokens in the same passes, so the weights are read once for all and
// what differs between them is memory alone. While the assistant's tokens are forced, the logits of
// every memory stand beside the reference's: streaming, as eviction would happen.
//
// A memory that has no room for a pass as a whole gets it in parts, by itself. One that cannot hold
// what it must falls out: its pages are freed, status() says why. The others play on as if it had
// never been there.
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

  /// Opens the sessions; a memory that finds no room for its own falls out. The engine outlives
  /// this.
  static Result<std::unique_ptr<Lockstep>> open(Engine& engine,
                                                std::span<const SessionOptions> memories);

  /// The same memories once more, of their first `tokens` tokens; what it plays is not seen here,
  /// and nothing here is tended while it is open.
  /// Memories that find no room for it fall out of the fork.
  Result<std::unique_ptr<Lockstep>> fork(std::size_t tokens) const;

  /// Plays labelled tokens behind those that were played, labels of all of them; `judged` is
  /// [tokens]: 1 where the assistant wrote the token. kResourceExhausted where the reference finds
  /// no room.
  Status play(std::span<const TokenId> tokens, const PromptLabels& labels,
              std::span<const std::uint8_t> judged, const PassTokens& most, const OnToken& on_token,
              const OnPass& on_pass);

  /// Evicts once, for memories that do only when they are asked: Engine::shrink(). One that cannot
  /// falls out.
  Status shrink(std::size_t memory, std::uint64_t bytes);

  /// kResourceExhausted, and why, for a memory that fell out.
  const Status& status(std::size_t memory) const { return failures_[memory + 1]; }
  std::size_t tokens_played() const { return sessions_[0]->tokens().size(); }
  /// REQUIRES: the memory's status is ok.
  const Session& session(std::size_t memory) const { return *sessions_[memory + 1]; }

 private:
  using OnLogits = Engine::SessionLogitsCallback;
  explicit Lockstep(Engine& engine) : engine_(engine) {}
  Status seat(Result<std::unique_ptr<Session>> session);
  Status keep_or_drop(std::size_t session, const Status& status);
  Status begin_turn(std::size_t tokens);
  Status extend(std::span<const TokenId> tokens, int first_wanted, const OnLogits& on_logits);
  Status extend_alone(std::size_t session, std::span<const TokenId> tokens, int first_wanted,
                      const OnLogits& on_logits);
  Status play_run(std::span<const TokenId> tokens, TokenId next, bool judged,
                  const OnToken& on_token);

  Engine& engine_;
  std::vector<std::unique_ptr<Session>> sessions_;  ///< the reference first; null: fell out
  std::vector<Status> failures_;                    ///< beside them
  std::vector<bool> in_parts_;                      ///< beside them: no room for whole passes
  std::vector<std::vector<float>> reference_;       ///< logits of a run's tokens
  bool answered_ = false;                           ///< what comes next is another turn
};

}  // namespace memdecay
