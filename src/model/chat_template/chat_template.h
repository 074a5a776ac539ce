// ChatTemplate: the program in a model file that turns a list of messages into a prompt.
//
// A small Jinja engine that renders as Hugging Face transformers does (jinja2's immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls, the generation tag, tojson, raise_exception,
// strftime_now). It is not a general Jinja: no template inheritance, includes or autoescape; what
// it does not know is a kUnsupported that names the construct and its line.
//
// Every stretch of the result says where it came from (Origin), however the template cut, joined,
// changed or serialised it, so that message content is never parsed for control tokens.
//
// Threads: a parsed template is immutable; any number of threads may render from it at once.
// Cost: parse O(source); render is bounded by RenderLimits. Source of the language: the Jinja
// documentation and jinja2 3.1.6 behaviour, measured (docs/design/chat_template.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "model/chat_template/origin.h"
#include "model/chat_template/render_limits.h"

namespace memdecay {

struct RenderOptions {
  bool add_generation_prompt = false;
  std::string bos_token;  ///< empty: the variable is undefined in the template
  std::string eos_token;
  /// What strftime_now formats; without it that function is undefined in the template.
  std::optional<std::tm> now;
  RenderLimits limits;
};

struct Segment {
  std::size_t begin;  ///< byte offsets into RenderedPrompt::text
  std::size_t end;
  Origin origin;
};

struct RenderedPrompt {
  std::string text;
  /// In order, not empty, without gaps, neighbours differ: they cover the whole text.
  std::vector<Segment> segments;
  /// The role of each message of the input, "" where it has none.
  std::vector<std::string> roles;
};

namespace jinja {
struct TemplateBody;
}

class ChatTemplate {
 public:
  /// kInvalidArgument for wrong syntax, kUnsupported for constructs this engine does not know; both
  /// with the line.
  static Result<std::unique_ptr<ChatTemplate>> parse(const std::string& source);

  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;
  ~ChatTemplate();

  /// `context` is an object: "messages", "tools", "documents" and any further variables. Fails
  /// where jinja2 raises (kInvalidArgument, with the template's own words from raise_exception),
  /// where a limit is hit, or where a construct is unknown.
  Result<RenderedPrompt> render(const nlohmann::ordered_json& context,
                                const RenderOptions& options) const;

 private:
  explicit ChatTemplate(std::unique_ptr<const jinja::TemplateBody> body);

  std::unique_ptr<const jinja::TemplateBody> body_;
};

}  // namespace memdecay
