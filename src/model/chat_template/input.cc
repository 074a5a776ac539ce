#include "model/chat_template/input.h"

#include <limits>

namespace memdecay::jinja {
namespace {

using Json = nlohmann::ordered_json;

std::u32string decode(Runtime& runtime, const std::string& bytes) {
  std::optional<std::u32string> chars = decode_utf8(bytes);
  if (!chars) runtime.fail_argument("the input holds a string that is not UTF-8");
  runtime.charge_characters(chars->size());
  return std::move(*chars);
}

Value import_number(Runtime& runtime, const Json& json, OriginId origin) {
  if (json.is_number_float()) return Value::floating(json.get<double>(), origin);
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > kMax) {
    runtime.fail_unsupported("the input's integer {}, which does not fit 64 bits",
                             json.get<std::uint64_t>());
  }
  return Value::integer(json.get<std::int64_t>(), origin);
}

/// Where the part that a value belongs to may change on the way down.
class Importer {
 public:
  Importer(Runtime& runtime, std::int32_t message) : runtime_(runtime), message_(message) {}

  Value import(const Json& json, PromptPart part) {
    const Runtime::Level level(runtime_);
    runtime_.charge_work(1);
    const OriginId origin = runtime_.origin_id({part, message_});
    switch (json.type()) {
      case Json::value_t::null:
        return Value::none(origin);
      case Json::value_t::boolean:
        return Value::boolean(json.get<bool>(), origin);
      case Json::value_t::string:
        return Value::string(decode(runtime_, json.get_ref<const std::string&>()), origin);
      case Json::value_t::array:
        return import_array(json, part, origin);
      case Json::value_t::object:
        return import_object(json, part, origin);
      case Json::value_t::number_integer:
      case Json::value_t::number_unsigned:
      case Json::value_t::number_float:
        return import_number(runtime_, json, origin);
      default:
        runtime_.fail_argument("the input holds a value that is not JSON");
    }
  }

  Value import_message(const Json& json) {
    const Value value = import_members(
        json, PromptPart::kOther, [&](const std::string& key) { return message_part(key, json); });
    value.dict().message = message_;
    return value;
  }

 private:
  template <typename PartOf>
  Value import_members(const Json& json, PromptPart part, const PartOf& part_of) {
    auto* dict = runtime_.make<DictObject>();
    for (const auto& [key, item] : json.items()) {
      const PromptPart member = part_of(key);
      const OriginId origin = runtime_.origin_id({member, message_});
      dict->items.emplace_back(Value::string(decode(runtime_, key), origin),
                               key == "tool_calls" || key == "function_call"
                                   ? import_calls(item)
                                   : import(item, member));
    }
    return Value::of(dict).with_origin(runtime_.origin_id({part, message_}));
  }

  Value import_array(const Json& json, PromptPart part, OriginId origin) {
    std::vector<Value> items;
    for (const Json& item : json) items.push_back(import(item, part));
    return runtime_.make_sequence(Kind::kList, std::move(items), origin);
  }

  Value import_object(const Json& json, PromptPart part, OriginId origin) {
    auto* dict = runtime_.make<DictObject>();
    for (const auto& [key, item] : json.items()) {
      dict->items.emplace_back(Value::string(decode(runtime_, key), origin), import(item, part));
    }
    return Value::of(dict).with_origin(origin);
  }

  /// A tool call: {"function": {"name", "arguments"}}, or the inner object alone, or a list.
  Value import_calls(const Json& json) {
    const Runtime::Level level(runtime_);
    const OriginId other = runtime_.origin_id({PromptPart::kOther, message_});
    if (json.is_array()) {
      std::vector<Value> items;
      for (const Json& item : json) items.push_back(import_calls(item));
      return runtime_.make_sequence(Kind::kList, std::move(items), other);
    }
    if (!json.is_object()) return import(json, PromptPart::kOther);
    auto* dict = runtime_.make<DictObject>();
    for (const auto& [key, item] : json.items()) {
      const PromptPart part = key == "name" ? PromptPart::kToolCallName
                              : key == "arguments" || key == "parameters"
                                  ? PromptPart::kToolCallArguments
                                  : PromptPart::kOther;
      const OriginId origin = runtime_.origin_id({part, message_});
      dict->items.emplace_back(Value::string(decode(runtime_, key), origin),
                               key == "function" ? import_calls(item) : import(item, part));
    }
    return Value::of(dict).with_origin(other);
  }

  static PromptPart message_part(const std::string& key, const Json& message) {
    if (key == "role") return PromptPart::kRole;
    if (key == "content") {
      const auto role = message.find("role");
      const bool is_result =
          role != message.end() && (*role == "tool" || *role == "function" || *role == "ipython");
      return is_result ? PromptPart::kToolResult : PromptPart::kContent;
    }
    if (key == "reasoning_content" || key == "reasoning" || key == "thinking") {
      return PromptPart::kReasoning;
    }
    return PromptPart::kOther;
  }

  Runtime& runtime_;
  std::int32_t message_;
};

Value import_messages(Runtime& runtime, const Json& messages) {
  if (!messages.is_array()) return Importer(runtime, -1).import(messages, PromptPart::kOther);
  std::vector<Value> items;
  for (const Json& message : messages) {
    Importer importer(runtime, static_cast<std::int32_t>(items.size()));
    items.push_back(message.is_object() ? importer.import_message(message)
                                        : importer.import(message, PromptPart::kContent));
  }
  return runtime.make_sequence(Kind::kList, std::move(items),
                               runtime.origin_id({PromptPart::kOther, -1}));
}

void set_trusted(Runtime& runtime, Scope* scope, const char* name, const std::string& text) {
  if (!text.empty()) scope->set(name, Value::string(decode(runtime, text)));
}

}  // namespace

void import_context(Runtime& runtime, const Json& context, const RenderOptions& options,
                    Scope* scope) {
  if (!context.is_object()) runtime.fail_argument("the context must be a JSON object");
  // As transformers passes them: there, even where the request has none.
  scope->set("tools", Value::none());
  scope->set("documents", Value::none());
  scope->set("add_generation_prompt", Value::boolean(options.add_generation_prompt));
  set_trusted(runtime, scope, "bos_token", options.bos_token);
  set_trusted(runtime, scope, "eos_token", options.eos_token);
  for (const auto& [name, json] : context.items()) {
    if (name == "messages") {
      scope->set(name, import_messages(runtime, json));
      continue;
    }
    const PromptPart part = name == "tools"       ? PromptPart::kToolSchema
                            : name == "documents" ? PromptPart::kDocument
                                                  : PromptPart::kOther;
    scope->set(name, Importer(runtime, -1).import(json, part));
  }
}

std::vector<std::string> message_roles(const Json& context) {
  std::vector<std::string> roles;
  const auto messages = context.find("messages");
  if (messages == context.end() || !messages->is_array()) return roles;
  for (const Json& message : *messages) {
    const bool has_role =
        message.is_object() && message.contains("role") && message.at("role").is_string();
    roles.push_back(has_role ? message.at("role").get<std::string>() : "");
  }
  return roles;
}

}  // namespace memdecay::jinja
