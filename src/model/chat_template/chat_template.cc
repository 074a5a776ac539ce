#include "model/chat_template/chat_template.h"

#include <utility>

#include "model/chat_template/input.h"
#include "model/chat_template/interpreter.h"
#include "model/chat_template/lexer.h"
#include "model/chat_template/parser.h"

namespace memdecay {
namespace {

Status to_status(const jinja::TemplateFailure& failure) {
  const char* prefix = failure.code == StatusCode::kUnsupported ? "not supported: " : "";
  return make_status(failure.code, "chat template, line {}: {}{}", failure.line, prefix,
                     failure.message);
}

/// Bytes and byte offsets from code points and code point offsets.
RenderedPrompt to_prompt(const jinja::Runtime& runtime, const jinja::Text& text) {
  RenderedPrompt prompt;
  std::size_t at = 0;
  for (const jinja::Text::Piece& piece : text.pieces()) {
    const std::size_t begin = prompt.text.size();
    for (; at < piece.end; ++at) jinja::append_utf8(&prompt.text, text.chars()[at]);
    const Origin& origin = runtime.origin(piece.origin);
    if (!prompt.segments.empty() && prompt.segments.back().origin == origin) {
      prompt.segments.back().end = prompt.text.size();
    } else {
      prompt.segments.push_back({begin, prompt.text.size(), origin});
    }
  }
  return prompt;
}

}  // namespace

const char* prompt_part_name(PromptPart part) {
  switch (part) {
    case PromptPart::kMarkup:
      return "markup";
    case PromptPart::kRole:
      return "role";
    case PromptPart::kContent:
      return "content";
    case PromptPart::kReasoning:
      return "reasoning";
    case PromptPart::kToolCallName:
      return "tool_call_name";
    case PromptPart::kToolCallArguments:
      return "tool_call_arguments";
    case PromptPart::kToolResult:
      return "tool_result";
    case PromptPart::kToolSchema:
      return "tool_schema";
    case PromptPart::kDocument:
      return "document";
    case PromptPart::kOther:
      return "other";
  }
  return "unknown";
}

ChatTemplate::ChatTemplate(std::unique_ptr<const jinja::TemplateBody> body)
    : body_(std::move(body)) {}

ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(const std::string& source) {
  const std::optional<std::u32string> chars = jinja::decode_utf8(source);
  if (!chars) {
    return Status(StatusCode::kInvalidArgument, "the chat template is not UTF-8");
  }
  try {
    jinja::Parser parser(jinja::tokenize(*chars));
    auto body =
        std::make_unique<const jinja::TemplateBody>(jinja::TemplateBody{parser.parse_template()});
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(body)));
  } catch (const jinja::TemplateFailure& failure) {
    return to_status(failure);
  }
}

Result<RenderedPrompt> ChatTemplate::render(const nlohmann::ordered_json& context,
                                            const RenderOptions& options) const {
  try {
    jinja::Runtime runtime(options.limits);
    runtime.clock = options.now;
    auto* scope = runtime.make<jinja::Scope>(nullptr);
    jinja::import_context(runtime, context, options, scope);
    jinja::Interpreter interpreter(runtime, scope);
    RenderedPrompt prompt = to_prompt(runtime, interpreter.render(*body_));
    prompt.roles = jinja::message_roles(context);
    return prompt;
  } catch (const jinja::TemplateFailure& failure) {
    return to_status(failure);
  }
}

}  // namespace memdecay
