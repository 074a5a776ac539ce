// Conversation: messages that are played through one session, turn by turn, as `chat` and `demo`
// do.
//
// Each turn renders the whole history with the model's template and sends it to the engine, which
// finds what the session already holds. Answers are streamed as whole characters.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.h"
#include "eval/play/played_turn.h"

namespace memdecay {

class Conversation {
 public:
  /// `engine` outlives the conversation.
  static Result<std::unique_ptr<Conversation>> open(Engine& engine, nlohmann::ordered_json tools);

  void add_message(nlohmann::ordered_json message) { messages_.push_back(std::move(message)); }
  const nlohmann::ordered_json& messages() const { return messages_; }
  const Session& session() const { return *session_; }
  /// What the last answer cost and what it left; turns count from 1.
  const PlayedTurn& last_turn() const { return last_turn_; }

  /// Generates the assistant's next message and adds it to the history. `on_text` gets whole
  /// characters as they come. A failure leaves the history as it was.
  Result<GenerationResult> answer(const SamplingOptions& sampling, int max_new_tokens,
                                  const std::function<void(const std::string&)>& on_text);
  /// Takes the last message back, after a turn that failed. REQUIRES: there is one.
  void forget_last_message() { messages_.erase(messages_.size() - 1); }

 private:
  Conversation(Engine& engine, std::unique_ptr<Session> session, nlohmann::ordered_json tools);
  Engine& engine_;
  std::unique_ptr<Session> session_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools_;
  PlayedTurn last_turn_;
};

}  // namespace memdecay
