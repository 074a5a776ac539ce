#include "eval/runs/plain_action.h"

#include <algorithm>
#include <optional>

namespace memdecay {
namespace {

TextSpan span_of(std::size_t begin, std::size_t end) {
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

TextSpan trimmed(std::string_view text, std::size_t begin, std::size_t end) {
  while (begin < end && is_blank(text[begin])) ++begin;
  while (end > begin && is_blank(text[end - 1])) --end;
  return span_of(begin, end);
}

/// The last stretch between two marks; a missing end mark means the end of the text.
std::optional<TextSpan> last_between(std::string_view text, std::string_view open,
                                     std::string_view close) {
  const std::size_t at = text.rfind(open);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t begin = at + open.size();
  return trimmed(text, begin, std::min(text.find(close, begin), text.size()));
}

/// The last fenced block with both fences, without its language word.
std::optional<TextSpan> last_fence(std::string_view text) {
  constexpr std::string_view kFence = "```";
  const std::size_t close = text.rfind(kFence);
  if (close == std::string_view::npos || close == 0) return std::nullopt;
  const std::size_t open = text.rfind(kFence, close - 1);
  if (open == std::string_view::npos || open + kFence.size() > close) return std::nullopt;
  const std::size_t line = text.find('\n', open);
  if (line == std::string_view::npos || line > close) return std::nullopt;
  return trimmed(text, line, close);
}

/// The end of the word or quoted string that starts at `at`.
std::size_t word_end(std::string_view text, std::size_t at, std::size_t end) {
  const char quote = text[at];
  if (quote == '"' || quote == '\'') {
    for (std::size_t i = at + 1; i < end; ++i) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        return i + 1;
      }
    }
    return end;
  }
  while (at < end && !is_blank(text[at])) ++at;
  return at;
}

void add_word(std::string_view text, std::size_t begin, std::size_t end, PlainAction& action) {
  const char first = text[begin];
  const bool option =
      first == '-' && end - begin > 1 && !(text[begin + 1] >= '0' && text[begin + 1] <= '9');
  if (option) {
    const std::size_t equals = std::min(text.find('=', begin), end);
    action.keys.push_back(span_of(begin, equals));
    if (equals + 1 < end) action.values.push_back(span_of(equals + 1, end));
    return;
  }
  const bool quoted = (first == '"' || first == '\'') && end - begin > 2 && text[end - 1] == first;
  action.values.push_back(quoted ? span_of(begin + 1, end - 1) : span_of(begin, end));
}

void split_command(std::string_view text, PlainAction& action) {
  const std::size_t end = action.whole.end;
  std::size_t line_end = std::min(text.find('\n', action.whole.begin), end);
  // A quoted string may hold lines; then the command has one part only.
  for (std::size_t at = action.whole.begin; at < line_end;) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    const std::size_t stop = word_end(text, at, end);
    if (stop > line_end) line_end = std::min(text.find('\n', stop), end);
    if (action.name.size() == 0) {
      action.name = span_of(at, stop);
    } else {
      add_word(text, at, stop, action);
    }
    at = stop;
  }
  const TextSpan rest = trimmed(text, line_end, end);
  if (rest.size() > 0) action.values.push_back(rest);
}

}  // namespace

PlainAction find_plain_action(std::string_view content) {
  PlainAction action;
  if (const auto call = last_between(content, "<tool_call>", "</tool_call>")) {
    action.whole = *call;
    action.json = true;
    return action;
  }
  const auto command = last_between(content, "<command>", "</command>");
  const auto block = command.has_value() ? command : last_fence(content);
  if (!block.has_value() || block->size() == 0) return action;
  action.whole = *block;
  split_command(content, action);
  return action;
}

}  // namespace memdecay
