// Prompt: a conversation as tokens, where every token knows its message, role and part.
//
// The chat template renders the text and says where each byte came from; control tokens are looked
// for only in what the template itself wrote, so message content can never forge one. Text between
// control tokens is tokenized as one run, so ids equal a reference tokenizer's on the same text.
// Pure functions of the model; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "engine/model.h"
#include "policy/region.h"

namespace memdecay {

struct Prompt {
  std::string text;
  std::vector<TokenId> tokens;
  /// [tokens.size()]: where the token's first byte came from.
  std::vector<Origin> origins;
  /// [tokens.size()]: the byte of `text` where the token ends; never falls.
  std::vector<std::uint32_t> token_ends;
  /// The role of each message, "" where it has none.
  std::vector<std::string> roles;
  /// The region that the client says each message is; empty where it says none of any.
  std::vector<std::optional<Region>> client_regions;
};

/// `conversation` is {"messages": [...], "tools": [...], ...}. A message's member "region" is the
/// client's word to the memory and no template sees it. kUnsupported for a model without a chat
/// template; kInvalidArgument for a region that there is not; else what the template says is wrong
/// with the conversation.
Result<Prompt> render_prompt(const Model& model, const nlohmann::ordered_json& conversation,
                             bool add_generation_prompt);

struct RawPromptOptions {
  bool add_special = true;     ///< the begin and end tokens that the model wants
  bool control_tokens = true;  ///< recognize control tokens, as people write them in raw prompts
};

/// Plain text without a template. kInvalidArgument for more than 4 GiB.
Result<Prompt> raw_prompt(const Model& model, const std::string& text,
                          const RawPromptOptions& options = {});

}  // namespace memdecay
