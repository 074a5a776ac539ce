#include "eval/message_tokens.h"

#include <algorithm>

#include "eval/template_fit.h"

namespace memdecay {

Result<std::vector<std::uint32_t>> token_ends_of(const Model& model, const Prompt& prompt) {
  std::vector<std::uint32_t> ends;
  ends.reserve(prompt.tokens.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < prompt.tokens.size(); ++i) {
    const std::string piece = model.token_text(prompt.tokens[i]);
    if (prompt.text.compare(at, piece.size(), piece) == 0) {
      at += piece.size();
    } else if (i + 1 < prompt.tokens.size() && i > 0) {
      return Status(StatusCode::kUnsupported,
                    "this model's tokens do not spell the text of its prompts");
    }  // else a begin or end token that the tokenizer added
    ends.push_back(static_cast<std::uint32_t>(at));
  }
  if (at == prompt.text.size()) return ends;
  return Status(StatusCode::kUnsupported,
                "this model's tokens do not spell the text of its prompts");
}

std::vector<MessageExtent> message_extents(const Prompt& prompt,
                                           const std::vector<std::uint32_t>& token_ends,
                                           std::size_t messages) {
  std::vector<MessageExtent> extents(messages);
  std::int32_t message = 0;  // text without a message counts to the one before
  std::size_t at = 0;
  for (std::size_t i = 0; i < messages; ++i) {
    MessageExtent& extent = extents[i];
    extent.first_token = static_cast<std::int32_t>(at);
    extent.first_byte = at == 0 ? 0 : token_ends[at - 1];
    while (at < prompt.tokens.size()) {
      message = std::max(message, prompt.origins[at].message);
      if (message > static_cast<std::int32_t>(i)) break;
      ++at;
    }
    extent.end_token = static_cast<std::int32_t>(at);
    extent.end_byte = at == 0 ? 0 : token_ends[at - 1];
  }
  return extents;
}

CountMessageTokens token_counter(const Model& model) {
  const bool fits = writes_tool_calls(model);
  return [&model,
          fits](const nlohmann::ordered_json& conversation) -> Result<std::vector<std::int32_t>> {
    MEMDECAY_ASSIGN_OR_RETURN(
        const Prompt prompt,
        render_prompt(model, fits ? conversation : with_calls_as_text(conversation), false));
    const std::vector<std::uint32_t> no_ends(prompt.tokens.size());
    std::vector<std::int32_t> counts;
    for (const MessageExtent& extent :
         message_extents(prompt, no_ends, conversation.at("messages").size())) {
      counts.push_back(extent.end_token - extent.first_token);
    }
    return counts;
  };
}

}  // namespace memdecay
