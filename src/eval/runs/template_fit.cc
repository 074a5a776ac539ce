#include "eval/runs/template_fit.h"

#include "engine/prompt/prompt.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// As Python's json.dumps writes it, which is how templates and training data do: a blank after
/// each comma and colon.
void append_spaced(const ordered_json& value, std::string& text) {
  if (value.is_object() || value.is_array()) {
    text += value.is_object() ? '{' : '[';
    bool first = true;
    for (const auto& item : value.items()) {
      if (!first) text += ", ";
      first = false;
      if (value.is_object()) text += ordered_json(item.key()).dump() + ": ";
      append_spaced(item.value(), text);
    }
    text += value.is_object() ? '}' : ']';
    return;
  }
  text += value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string call_text(const ordered_json& call) {
  const ordered_json& function = call.at("function");
  std::string text = "<tool_call>\n{\"name\": " + function.at("name").dump() + ", \"arguments\": ";
  append_spaced(function.at("arguments"), text);
  return text + "}\n</tool_call>";
}

}  // namespace

bool writes_tool_calls(const Model& model) {
  const char* kName = "probe_of_calls";
  const ordered_json function = {{"name", kName}, {"arguments", ordered_json::object()}};
  const ordered_json calls =
      ordered_json::array({ordered_json{{"type", "function"}, {"function", function}}});
  const ordered_json messages = ordered_json::array(
      {ordered_json{{"role", "user"}, {"content", "a"}},
       ordered_json{{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}}});
  const Result<Prompt> prompt = render_prompt(model, {{"messages", messages}}, false);
  return prompt.ok() && prompt->text.find(kName) != std::string::npos;
}

ordered_json with_calls_as_text(ordered_json conversation) {
  for (ordered_json& message : conversation.at("messages")) {
    if (!message.contains("tool_calls")) continue;
    std::string content = message.at("content").get<std::string>();
    for (const ordered_json& call : message.at("tool_calls")) {
      content += (content.empty() ? "" : "\n") + call_text(call);
    }
    message["content"] = std::move(content);
    message.erase("tool_calls");
  }
  return conversation;
}

ordered_json fit_to_template(const Model& model, ordered_json conversation) {
  return writes_tool_calls(model) ? conversation : with_calls_as_text(std::move(conversation));
}

}  // namespace memdecay
