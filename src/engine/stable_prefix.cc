#include "engine/stable_prefix.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/ascii.h"
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

std::string moved(std::string_view text) {
  std::string stable, rest;
  const auto add = [](std::string& to, std::string_view line) {
    if (!to.empty() && to.back() != '\n') to.push_back('\n');
    to += line;
  };
  for (const std::string_view line : lines_of(text))
    add(normalised(line) == line ? stable : rest, line);
  if (!rest.empty()) add(stable, rest);
  // The message ends as it did.
  if (!text.empty() && text.back() != '\n' && stable.back() == '\n') stable.pop_back();
  return stable;
}

}  // namespace

Result<StablePrefix> stable_prefix_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, StablePrefix>, 3> kNames = {
      {{"off", StablePrefix::kOff},
       {"normalise", StablePrefix::kNormalise},
       {"move", StablePrefix::kMove}}};
  for (const auto& [known, rule] : kNames)
    if (known == name) return rule;
  return make_status(StatusCode::kInvalidArgument,
                     "there is no rule \"{}\" for prefixes; there are off, normalise, move", name);
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

void make_prefix_stable(nlohmann::ordered_json& messages, StablePrefix rule) {
  if (rule == StablePrefix::kOff || !messages.is_array()) return;
  const auto rewrite = [rule](nlohmann::ordered_json& text) {
    if (text.is_string()) text = stable_text(text.get_ref<const std::string&>(), rule);
  };
  for (nlohmann::ordered_json& message : messages) {
    if (!message.is_object() || !message.contains("content")) continue;
    const nlohmann::ordered_json role = message.value("role", nlohmann::ordered_json());
    if (role != "system" && role != "developer") continue;
    nlohmann::ordered_json& content = message["content"];
    rewrite(content);
    if (!content.is_array()) continue;
    for (nlohmann::ordered_json& part : content)
      if (part.is_object() && part.contains("text")) rewrite(part["text"]);
  }
}

}  // namespace memdecay
