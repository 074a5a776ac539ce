// Origin: where a stretch of a rendered prompt came from.
//
// A prompt is made of text that the template wrote (trusted: it may hold control tokens) and of
// text that came in with the request (never parsed for control tokens). An Origin says which, of
// which message, and which part of it. Plain value, any thread.
#pragma once

#include <cstdint>

namespace memdecay {

enum class PromptPart : std::uint8_t {
  kMarkup,             ///< text of the template itself: role markers, separators, fixed sentences
  kRole,               ///< a message's "role"
  kContent,            ///< a message's "content" (text parts of a content list too)
  kReasoning,          ///< "reasoning_content", "reasoning", "thinking"
  kToolCallName,       ///< the name in a tool call
  kToolCallArguments,  ///< the arguments in a tool call
  kToolResult,         ///< the content of a message whose role is tool, function or ipython
  kToolSchema,         ///< the "tools" of the request
  kDocument,           ///< the "documents" of the request
  kOther,              ///< anything else that came in: ids, names, extra variables
};

/// The English name of a part, e.g. "tool_result".
const char* prompt_part_name(PromptPart part);

struct Origin {
  PromptPart part = PromptPart::kMarkup;
  /// The index in `messages` that the text belongs to, -1 where it belongs to none. For kMarkup:
  /// the message that the template was looping over when it wrote the text.
  std::int32_t message = -1;

  /// Only text that the template wrote may hold control tokens.
  bool from_template() const { return part == PromptPart::kMarkup; }
  friend bool operator==(const Origin&, const Origin&) = default;
};

}  // namespace memdecay
