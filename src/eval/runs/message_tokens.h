// How a rendered conversation divides into messages: which bytes and tokens belong to which.
//
// A message owns the text that the template wrote while it looped over it (role markers too).
// Text before the first message (a default system prompt, tool schemas) counts to message 0.
// Pure functions, any thread. O(text).
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/status.h"
#include "engine/prompt/prompt.h"

namespace memdecay {

/// Half-open runs of tokens and of bytes.
struct MessageExtent {
  std::int32_t first_token = 0;
  std::int32_t end_token = 0;
  std::uint32_t first_byte = 0;
  std::uint32_t end_byte = 0;
};

/// [messages] in order; a message that left no text is empty.
std::vector<MessageExtent> message_extents(const Prompt& prompt, std::size_t messages);

/// Tokens of each message of a conversation: what chaining needs to know of a model.
using CountMessageTokens =
    std::function<Result<std::vector<std::int32_t>>(const nlohmann::ordered_json& conversation)>;

/// Counts with the model's own template and tokenizer, conversations fitted to it. `model` outlives
/// the function.
CountMessageTokens token_counter(const Model& model);

}  // namespace memdecay
