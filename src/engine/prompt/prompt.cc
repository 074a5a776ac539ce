#include "engine/prompt/prompt.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "model/tokenizer/tokenizer.h"

namespace memdecay {
namespace {

/// Byte ranges that the template itself wrote, neighbours joined.
std::vector<ByteRange> control_ranges(const RenderedPrompt& rendered) {
  std::vector<ByteRange> ranges;
  for (const Segment& segment : rendered.segments) {
    if (!segment.origin.from_template()) continue;
    const ByteRange range{static_cast<std::uint32_t>(segment.begin),
                          static_cast<std::uint32_t>(segment.end)};
    if (!ranges.empty() && ranges.back().end == range.begin) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

std::tm local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm broken_down{};
  localtime_r(&now, &broken_down);
  return broken_down;
}

/// Splits encoded tokens into ids, origins and ends.
void take_tokens(const std::vector<Token>& tokens, const std::vector<Segment>& segments,
                 Prompt& prompt) {
  std::size_t segment = 0;
  for (const Token& token : tokens) {
    while (segment + 1 < segments.size() && segments[segment].end <= token.begin) ++segment;
    prompt.tokens.push_back(token.id);
    prompt.origins.push_back(segments.empty() ? Origin() : segments[segment].origin);
    const std::uint32_t before = prompt.token_ends.empty() ? 0 : prompt.token_ends.back();
    prompt.token_ends.push_back(std::max(before, token.end));
  }
}

/// Templates take much for granted: from a string they would make a prompt of nothing but defaults.
Status check_messages(const nlohmann::ordered_json& conversation) {
  const auto messages =
      conversation.is_object() ? conversation.find("messages") : conversation.end();
  if (messages == conversation.end() || !messages->is_array()) {
    return Status(StatusCode::kInvalidArgument,
                  "the conversation is no JSON object with a list \"messages\"");
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    if ((*messages)[i].is_object()) continue;
    return make_status(StatusCode::kInvalidArgument,
                       "message {} of the conversation is no object with a role and content",
                       i + 1);
  }
  return Status();
}

bool says_a_region(const nlohmann::ordered_json& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const auto& message) { return message.contains("region"); });
}

/// Takes the regions that the client says out of the messages. [messages]
Result<std::vector<std::optional<Region>>> take_regions(nlohmann::ordered_json& messages) {
  std::vector<std::optional<Region>> regions(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto said = messages[i].find("region");
    if (said == messages[i].end()) continue;
    const auto known = std::find_if(kRegions.begin(), kRegions.end(),
                                    [&](Region region) { return *said == region_name(region); });
    if (known == kRegions.end()) {
      return make_status(StatusCode::kInvalidArgument,
                         "the \"region\" of message {} of the conversation is none of {}", i + 1,
                         fmt::join(kRegionNames, ", "));
    }
    regions[i] = *known;
    messages[i].erase(said);
  }
  return regions;
}

}  // namespace

Result<Prompt> render_prompt(const Model& model, const nlohmann::ordered_json& conversation,
                             bool add_generation_prompt) {
  if (model.chat_template() == nullptr) {
    return model.chat_template_status().ok()
               ? Status(StatusCode::kUnsupported,
                        "this model has no chat template: it is a base model, use a plain prompt")
               : model.chat_template_status();
  }
  MEMDECAY_RETURN_IF_ERROR(check_messages(conversation));
  if (says_a_region(conversation.at("messages"))) {
    nlohmann::ordered_json plain = conversation;
    MEMDECAY_ASSIGN_OR_RETURN(auto regions, take_regions(plain.at("messages")));
    MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt, render_prompt(model, plain, add_generation_prompt));
    prompt.client_regions = std::move(regions);
    return prompt;
  }
  RenderOptions options;
  options.add_generation_prompt = add_generation_prompt;
  options.bos_token = model.bos_text();
  options.eos_token = model.eos_text();
  options.now = local_now();
  MEMDECAY_ASSIGN_OR_RETURN(RenderedPrompt rendered,
                            model.chat_template()->render(conversation, options));
  const std::vector<ByteRange> ranges = control_ranges(rendered);
  EncodeOptions encode;
  // Begin and end tokens have one owner: a template that writes BOS itself gets no second one.
  encode.add_special = options.bos_token.empty() || !rendered.text.starts_with(options.bos_token);
  encode.control_ranges = ranges;
  encode.markers_in_ranges_only = true;  // "<tool_call>" in content is text
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                            model.tokenizer().encode(rendered.text, encode));
  Prompt prompt;
  take_tokens(tokens, rendered.segments, prompt);
  prompt.text = std::move(rendered.text);
  prompt.roles = std::move(rendered.roles);
  return prompt;
}

Result<Prompt> raw_prompt(const Model& model, const std::string& text,
                          const RawPromptOptions& options) {
  EncodeOptions encode;
  encode.add_special = options.add_special;
  encode.control_everywhere = options.control_tokens;
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                            model.tokenizer().encode(text, encode));
  Prompt prompt;
  prompt.text = text;
  take_tokens(tokens, {}, prompt);
  return prompt;
}

}  // namespace memdecay
