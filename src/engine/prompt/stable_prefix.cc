#include "engine/prompt/stable_prefix.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/value_named.h"
#include "engine/prompt/written_date.h"
#include "kv/prefix/miss_reason.h"

namespace memdecay {
namespace {

/// What stands for the word where it is volatile; else empty.
std::string_view stand_in(std::string_view word) {
  if (is_time_or_date(word)) return "[time]";
  const bool named = std::any_of(word.begin(), word.end(), is_letter);
  return named && is_identifier(word) ? "[id]" : "";
}

/// The text with stand-ins for its volatile words.
std::string normalised(std::string_view text) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    if (!is_word_character(text[at])) {
      result.push_back(text[at++]);
      continue;
    }
    if (const std::size_t date_end = written_date_end(text, at); date_end > at) {
      result += "[time]";
      at = date_end;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word_character(text[end])) ++end;
    const std::size_t next = end;
    // The end of a sentence is no part of the word.
    while (end > at && !is_alnum(text[end - 1])) --end;
    const std::string_view word = text.substr(at, end - at);
    const std::string_view other = stand_in(word);
    result += other.empty() ? word : other;
    result += text.substr(end, next - end);
    at = next;
  }
  return result;
}

/// Lines with their line ends; the last one may have none.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

struct SplitText {
  std::string stable;
  std::string rest;  ///< lines with volatile words
};

void add_line(std::string& to, std::string_view line) {
  if (!to.empty() && to.back() != '\n') to.push_back('\n');
  to += line;
}

SplitText split(std::string_view text) {
  SplitText parts;
  for (const std::string_view line : lines_of(text))
    add_line(normalised(line) == line ? parts.stable : parts.rest, line);
  return parts;
}

std::string moved(std::string_view text) {
  SplitText parts = split(text);
  if (!parts.rest.empty()) add_line(parts.stable, parts.rest);
  // The message ends as it did.
  if (!text.empty() && text.back() != '\n' && parts.stable.back() == '\n') parts.stable.pop_back();
  return std::move(parts.stable);
}

using Json = nlohmann::ordered_json;

bool has_role(const Json& message, std::initializer_list<const char*> roles) {
  if (!message.is_object() || !message.contains("content")) return false;
  const auto role = message.find("role");
  return role != message.end() &&
         std::any_of(roles.begin(), roles.end(), [&](const char* name) { return *role == name; });
}

/// Calls `rewrite` with every text of the message's content.
void for_texts(Json& message, const std::function<void(std::string&)>& rewrite) {
  const auto visit = [&](Json& text) {
    if (text.is_string()) rewrite(text.get_ref<std::string&>());
  };
  Json& content = message["content"];
  visit(content);
  if (!content.is_array()) return;
  for (Json& part : content)
    if (part.is_object() && part.contains("text")) visit(part["text"]);
}

/// Text in front of a message's own.
void put_before(Json& message, std::string text) {
  Json& content = message["content"];
  if (content.is_array()) {
    content.insert(content.begin(), Json{{"type", "text"}, {"text", std::move(text)}});
  } else {
    content = text + content.get<std::string>();
  }
}

/// Templates may write the tools behind the system message, so what changes goes behind both: from
/// the messages before `user` into its text.
void move_into(Json& user, std::span<Json> before) {
  std::string rest;
  for (Json& message : before) {
    if (!has_role(message, {"system", "developer"})) continue;
    for_texts(message, [&](std::string& text) {
      SplitText parts = split(text);
      if (parts.rest.empty()) return;
      add_line(rest, parts.rest);
      text = std::move(parts.stable);
    });
  }
  if (rest.empty()) return;
  if (rest.back() != '\n') rest.push_back('\n');
  put_before(user, std::move(rest));
}

}  // namespace

Result<StablePrefix> stable_prefix_named(std::string_view name) {
  constexpr NamedValues<StablePrefix, 3> kNames = {{{"off", StablePrefix::kOff},
                                                    {"normalise", StablePrefix::kNormalise},
                                                    {"move", StablePrefix::kMove}}};
  return value_named("rule for prefixes", name, kNames);
}

std::string stable_text(std::string_view text, StablePrefix rule) {
  switch (rule) {
    case StablePrefix::kNormalise:
      return normalised(text);
    case StablePrefix::kMove:
      return moved(text);
    case StablePrefix::kOff:
      break;
  }
  return std::string(text);
}

void make_prefix_stable(Json& conversation, StablePrefix rule) {
  if (rule == StablePrefix::kOff || !conversation.is_object()) return;
  const auto messages = conversation.find("messages");
  if (messages == conversation.end() || !messages->is_array()) return;
  auto& list = messages->get_ref<Json::array_t&>();
  const auto tools = conversation.find("tools");
  const bool has_tools = tools != conversation.end() && !tools->empty();
  if (rule == StablePrefix::kMove && has_tools) {
    const auto user = std::find_if(list.begin(), list.end(), [](const Json& message) {
      return has_role(message, {"user"}) &&
             (message["content"].is_string() || message["content"].is_array());
    });
    if (user != list.end()) move_into(*user, {list.begin(), user});
  }
  for (Json& message : list) {
    if (!has_role(message, {"system", "developer"})) continue;
    for_texts(message, [rule](std::string& text) { text = stable_text(text, rule); });
  }
}

}  // namespace memdecay
