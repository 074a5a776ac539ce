#include "eval/readers/chat_messages.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/text_hash.h"
#include "eval/readers/parse_json.h"
#include "policy/region.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

Status wrong(const std::string& place, std::string_view name, std::string_view what) {
  return make_status(StatusCode::kCorrupt, "{}: \"{}\" {}", place, name, what);
}

Result<const ordered_json*> member(const ordered_json& object, const char* name,
                                   const std::string& place) {
  if (!object.is_object())
    return make_status(StatusCode::kCorrupt, "{} is not a JSON object", place);
  const auto found = object.find(name);
  if (found == object.end()) return wrong(place, name, "is missing");
  return &*found;
}

Result<std::string> content_text(const ordered_json& message, const std::string& place) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return wrong(place, "content", "is no text");
  std::string joined;
  for (const ordered_json& part : *found) {
    if (part.is_string()) {
      joined += part.get<std::string>();
    } else if (part.is_object() && part.contains("text") && part.at("text").is_string()) {
      joined += part.at("text").get<std::string>();
    }
  }
  return joined;
}

Result<ordered_json> clean_arguments(const ordered_json& function, const std::string& place) {
  const auto found = function.find("arguments");
  if (found == function.end() || found->is_null()) return ordered_json::object();
  if (!found->is_string()) return *found;
  const std::string& text = found->get_ref<const std::string&>();
  Result<ordered_json> parsed = parse_json(text, place);
  // What a model wrote need not be JSON: then its text is the argument, as a template would see it.
  if (!parsed.ok() || !parsed->is_object()) return ordered_json(text);
  return parsed;
}

Result<ordered_json> clean_call(const ordered_json& call, const std::string& place) {
  if (!call.is_object()) return make_status(StatusCode::kCorrupt, "{} is no tool call", place);
  const bool nested = call.contains("function");
  const ordered_json& function = nested ? call.at("function") : call;
  MEMDECAY_ASSIGN_OR_RETURN(std::string name, text_member(function, "name", place));
  MEMDECAY_ASSIGN_OR_RETURN(ordered_json arguments, clean_arguments(function, place));
  ordered_json clean = ordered_json::object();
  if (const std::string id = label_member(call, "id"); !id.empty()) clean["id"] = id;
  clean["type"] = "function";
  clean["function"] = {{"name", std::move(name)}, {"arguments", std::move(arguments)}};
  return clean;
}

Result<ordered_json> clean_calls(const ordered_json& message, const std::string& place) {
  ordered_json clean = ordered_json::array();
  const auto found = message.find("tool_calls");
  if (found == message.end() || found->is_null()) return clean;
  if (!found->is_array()) return wrong(place, "tool_calls", "is no list");
  for (std::size_t i = 0; i < found->size(); ++i) {
    const std::string here = fmt::format("{}, tool call {}", place, i + 1);
    MEMDECAY_ASSIGN_OR_RETURN(ordered_json call, clean_call((*found)[i], here));
    clean.push_back(std::move(call));
  }
  return clean;
}

Result<std::string> clean_role(const ordered_json& message, const std::string& place) {
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  MEMDECAY_ASSIGN_OR_RETURN(std::string role, text_member(message, "role", place));
  if (role == "developer") role = "system";
  if (role == "function" || role == "ipython") role = "tool";
  for (const std::string_view known : kRoles) {
    if (role == known) return role;
  }
  return make_status(StatusCode::kCorrupt, "{}: the role \"{}\" is none of a chat", place, role);
}

/// The id of the call that a result answers, under the names that recordings use.
std::string answered_call(const ordered_json& message) {
  if (const std::string id = label_member(message, "tool_call_id"); !id.empty()) return id;
  const auto ids = message.find("tool_call_ids");
  const bool one =
      ids != message.end() && ids->is_array() && !ids->empty() && (*ids)[0].is_string();
  return one ? (*ids)[0].get<std::string>() : std::string();
}

/// Whether the member is the client's word to the memory; recordings call other things a region.
bool says_its_region(const ordered_json& message) {
  const auto said = message.find("region");
  return said != message.end() && std::any_of(kRegionNames.begin(), kRegionNames.end(),
                                              [&](std::string_view name) { return *said == name; });
}

}  // namespace

Result<std::string> text_member(const ordered_json& object, const char* name,
                                const std::string& place) {
  MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const value, member(object, name, place));
  if (!value->is_string()) return wrong(place, name, "is no text");
  return value->get<std::string>();
}

Result<const ordered_json*> list_member(const ordered_json& object, const char* name,
                                        const std::string& place) {
  MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const value, member(object, name, place));
  if (!value->is_array()) return wrong(place, name, "is no list");
  return value;
}

Result<std::int64_t> number_member(const ordered_json& object, const char* name,
                                   const std::string& place) {
  MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const value, member(object, name, place));
  if (value->is_number_integer()) return value->get<std::int64_t>();
  if (value->is_string()) {
    const std::string& text = value->get_ref<const std::string&>();
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code == std::errc() && end == text.data() + text.size() && !text.empty()) return number;
  }
  return wrong(place, name, "is no whole number");
}

std::string label_member(const ordered_json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  if (found == object.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  return found->is_number_integer() ? std::to_string(found->get<std::int64_t>()) : std::string();
}

Result<ordered_json> clean_message(const ordered_json& message, const std::string& place) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string role, clean_role(message, place));
  MEMDECAY_ASSIGN_OR_RETURN(std::string content, content_text(message, place));
  ordered_json clean = {{"role", role}, {"content", std::move(content)}};
  if (role == "assistant") {
    MEMDECAY_ASSIGN_OR_RETURN(ordered_json calls, clean_calls(message, place));
    if (!calls.empty()) clean["tool_calls"] = std::move(calls);
  }
  if (role == "tool") {
    if (const std::string name = label_member(message, "name"); !name.empty()) clean["name"] = name;
    if (const std::string id = answered_call(message); !id.empty()) clean["tool_call_id"] = id;
  }
  if (says_its_region(message)) clean["region"] = message.at("region");
  return clean;
}

Result<Trajectory> trajectory_of(const ordered_json& record, const char* name,
                                 const std::string& place) {
  MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const messages, list_member(record, name, place));
  Trajectory trajectory;
  trajectory.source = place;
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const ordered_json& given = (*messages)[i];
    const std::string here = fmt::format("{}, message {}", place, i + 1);
    MEMDECAY_ASSIGN_OR_RETURN(ordered_json message, clean_message(given, here));
    const auto demo = given.find("is_demo");
    const bool shown = demo != given.end() && demo->is_boolean() && demo->get<bool>();
    const bool recorded = message.at("role") == "assistant" && !shown;
    add_message(trajectory, std::move(message), recorded);
  }
  if (messages->empty()) return make_status(StatusCode::kCorrupt, "{} has no messages", place);
  return trajectory;
}

void add_message(Trajectory& trajectory, ordered_json message, bool recorded) {
  trajectory.conversation["messages"].push_back(std::move(message));
  trajectory.recorded.push_back(recorded ? 1 : 0);
}

ordered_json chat_message(const char* role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

std::string task_of_text(std::string_view text) {
  std::string words;
  for (const char c : text) {
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') words.push_back(c);
  }
  return fmt::format("{:016x}", text_hash(words));
}

}  // namespace memdecay
