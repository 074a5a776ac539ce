// Player: plays a recorded conversation through one session, turn by turn, and says what each turn
// cost.
//
// A turn is one assistant message: everything before it is the turn's input. Either the recorded
// answer is forced, token by token, as if the model had written it; or the model writes its own,
// which takes the recorded one's place in the history that follows. A forced token costs what a
// decode step does, output head and choice of a token included. A conversation that ends with a
// question has one turn more, whose answer the model writes in any case. Every turn sends the whole
// history again, as clients do. One thread, the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/prompt/prompt.h"
#include "engine/prompt/stable_prefix.h"
#include "eval/play/played_turn.h"

namespace memdecay {

struct PlayOptions {
  bool force_recorded = true;
  int generate_tokens = 128;  ///< most of an answer that the model writes itself
  SamplingOptions sampling;
  StablePrefix stable_prefix = StablePrefix::kOff;  ///< of the system messages
  std::string cache_salt;                           ///< whose prefixes it shares (SessionOptions)
  /// Nothing is evicted while turns are played, and at the end the session shrinks to this once:
  /// eviction after the fact. 0: as the engine's budget asks, while they are played.
  std::uint64_t shrink_to_bytes = 0;
};

class Player {
 public:
  /// `conversation` is {"messages", "tools"}, read as eval reads runs of that format
  /// (readers/chat_messages.h, runs/template_fit.h); kCorrupt says what is wrong where. The engine
  /// outlives the player.
  static Result<std::unique_ptr<Player>> open(Engine& engine, nlohmann::ordered_json conversation,
                                              const PlayOptions& options);

  int turns() const { return static_cast<int>(answers_.size()); }
  /// Plays the next turn; nothing when all are played.
  Result<std::optional<PlayedTurn>> next();
  const Session& session() const { return *session_; }

 private:
  Player(Engine& engine, const PlayOptions& options) : engine_(engine), options_(options) {}
  /// The first `messages` messages, as the model's template renders them.
  Result<Prompt> render(std::size_t messages, bool add_generation_prompt) const;
  Status force(std::size_t answer, PlayedTurn& turn);
  Status generate(std::size_t answer, PlayedTurn& turn);

  Engine& engine_;
  PlayOptions options_;
  nlohmann::ordered_json conversation_;
  std::vector<std::size_t> answers_;  ///< indices of assistant messages; the last may be to come
  std::unique_ptr<Session> session_;
  std::size_t next_ = 0;
};

}  // namespace memdecay
