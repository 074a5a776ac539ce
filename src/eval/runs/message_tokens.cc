#include "eval/runs/message_tokens.h"

#include <algorithm>

#include "eval/runs/template_fit.h"

namespace memdecay {

std::vector<MessageExtent> message_extents(const Prompt& prompt, std::size_t messages) {
  std::vector<MessageExtent> extents(messages);
  std::int32_t message = 0;  // text without a message counts to the one before
  std::size_t at = 0;
  for (std::size_t i = 0; i < messages; ++i) {
    MessageExtent& extent = extents[i];
    extent.first_token = static_cast<std::int32_t>(at);
    extent.first_byte = at == 0 ? 0 : prompt.token_ends[at - 1];
    while (at < prompt.tokens.size()) {
      message = std::max(message, prompt.origins[at].message);
      if (message > static_cast<std::int32_t>(i)) break;
      ++at;
    }
    extent.end_token = static_cast<std::int32_t>(at);
    extent.end_byte = at == 0 ? 0 : prompt.token_ends[at - 1];
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
    std::vector<std::int32_t> counts;
    for (const MessageExtent& extent :
         message_extents(prompt, conversation.at("messages").size())) {
      counts.push_back(extent.end_token - extent.first_token);
    }
    return counts;
  };
}

}  // namespace memdecay
