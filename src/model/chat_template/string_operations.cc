#include "model/chat_template/string_operations.h"

#include <algorithm>

#include "model/chat_template/unicode.h"

namespace memdecay::jinja {
namespace {

bool in_set(const Text* chars, char32_t c) {
  return chars == nullptr ? is_space(c) : chars->chars().find(c) != std::u32string::npos;
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::vector<Text> split_spaces(Runtime& runtime, const Text& text, std::int64_t limit) {
  std::vector<Text> out;
  const std::u32string& chars = text.chars();
  std::size_t at = 0;
  for (;;) {
    while (at < chars.size() && is_space(chars[at])) ++at;
    if (at == chars.size()) return out;
    std::size_t end = at;
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) >= limit) {
      end = chars.size();
      while (end > at && is_space(chars[end - 1])) --end;
      out.push_back(text.slice(at, end));
      return out;
    }
    while (end < chars.size() && !is_space(chars[end])) ++end;
    runtime.charge_work(4);
    out.push_back(text.slice(at, end));
    at = end;
  }
}

std::vector<Text> split_spaces_right(Runtime& runtime, const Text& text, std::int64_t limit) {
  std::vector<Text> out;
  const std::u32string& chars = text.chars();
  std::size_t end = chars.size();
  for (;;) {
    while (end > 0 && is_space(chars[end - 1])) --end;
    if (end == 0) break;
    std::size_t begin = end;
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) >= limit) {
      begin = 0;
      while (begin < end && is_space(chars[begin])) ++begin;
      out.push_back(text.slice(begin, end));
      break;
    }
    while (begin > 0 && !is_space(chars[begin - 1])) --begin;
    runtime.charge_work(4);
    out.push_back(text.slice(begin, end));
    end = begin;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

Text upper_text(Runtime& runtime, const Text& text) {
  runtime.charge_characters(text.size());
  Text out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out.append(to_upper(text.chars()[i]), text.origin_at(i));
  }
  return out;
}

Text lower_text(Runtime& runtime, const Text& text) {
  runtime.charge_characters(text.size());
  Text out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out.append(to_lower(text.chars(), i), text.origin_at(i));
  }
  return out;
}

Text capitalize_text(Runtime& runtime, const Text& text) {
  runtime.charge_characters(text.size());
  Text out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    out.append(i == 0 ? to_title(text.chars()[0]) : to_lower(text.chars(), i), text.origin_at(i));
  }
  return out;
}

Text title_text(Runtime& runtime, const Text& text) {
  runtime.charge_characters(text.size());
  Text out;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text.chars()[i];
    out.append(in_word ? to_lower(text.chars(), i) : to_title(c), text.origin_at(i));
    in_word = is_cased(c);
  }
  return out;
}

Text strip_text(const Text& text, const Text* chars, Side side) {
  std::size_t begin = 0;
  std::size_t end = text.size();
  if (side != Side::kRight) {
    while (begin < end && in_set(chars, text.chars()[begin])) ++begin;
  }
  if (side != Side::kLeft) {
    while (end > begin && in_set(chars, text.chars()[end - 1])) --end;
  }
  return text.slice(begin, end);
}

Text replace_text(Runtime& runtime, const Text& text, const Text& from, const Text& to,
                  std::int64_t count) {
  runtime.charge_characters(text.size());
  Text out;
  std::size_t at = 0;
  std::size_t copied = 0;
  for (std::int64_t done = 0; count < 0 || done < count; ++done) {
    const std::size_t found = text.chars().find(from.chars(), at);
    if (found == std::u32string::npos) break;
    runtime.charge_characters(1 + to.size());
    out.append_range(text, copied, found);
    out.append(to);
    copied = found + from.size();
    at = from.empty() ? found + 1 : copied;
    if (at > text.size()) break;
  }
  out.append_range(text, copied, text.size());
  return out;
}

std::vector<Text> split_text(Runtime& runtime, const Text& text, const Text* separator,
                             std::int64_t limit) {
  runtime.charge_characters(text.size());
  if (separator == nullptr) return split_spaces(runtime, text, limit);
  if (separator->empty()) runtime.fail_argument("split needs a separator that is not empty");
  std::vector<Text> out;
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t found = text.chars().find(separator->chars(), at);
    if (found == std::u32string::npos) break;
    runtime.charge_work(4);
    out.push_back(text.slice(at, found));
    at = found + separator->size();
  }
  out.push_back(text.slice(at, text.size()));
  return out;
}

std::vector<Text> split_text_right(Runtime& runtime, const Text& text, const Text* separator,
                                   std::int64_t limit) {
  runtime.charge_characters(text.size());
  if (separator == nullptr) return split_spaces_right(runtime, text, limit);
  if (separator->empty()) runtime.fail_argument("rsplit needs a separator that is not empty");
  std::vector<Text> out;
  std::size_t end = text.size();
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    if (end < separator->size()) break;
    const std::size_t found = text.chars().rfind(separator->chars(), end - separator->size());
    if (found == std::u32string::npos) break;
    runtime.charge_work(4);
    out.push_back(text.slice(found + separator->size(), end));
    end = found;
  }
  out.push_back(text.slice(0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends) {
  runtime.charge_characters(text.size());
  std::vector<Text> out;
  const std::u32string& chars = text.chars();
  for (std::size_t at = 0; at < chars.size();) {
    std::size_t end = at;
    while (end < chars.size() && !is_line_end(chars[end])) ++end;
    std::size_t next = end;
    if (next < chars.size()) {
      next += chars[next] == U'\r' && next + 1 < chars.size() && chars[next + 1] == U'\n' ? 2U : 1U;
    }
    runtime.charge_work(4);
    out.push_back(text.slice(at, keep_ends ? next : end));
    at = next;
  }
  return out;
}

Text join_texts(Runtime& runtime, const Text& separator, const std::vector<Text>& parts) {
  Text out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    runtime.charge_characters(parts[i].size() + separator.size());
    if (i > 0) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

Text pad_text(Runtime& runtime, const Text& text, std::int64_t width, char32_t fill, Side side) {
  const auto size = static_cast<std::int64_t>(text.size());
  if (width <= size) return text;
  runtime.charge_characters(static_cast<std::uint64_t>(width));
  const std::int64_t missing = width - size;
  // str.center puts the odd one left where the width is odd.
  const std::int64_t left = side == Side::kLeft    ? missing
                            : side == Side::kRight ? 0
                                                   : missing / 2 + (missing & width & 1);
  Text out(std::u32string(static_cast<std::size_t>(left), fill), kTemplateOrigin);
  out.append(text);
  out.append(std::u32string(static_cast<std::size_t>(missing - left), fill), kTemplateOrigin);
  return out;
}

}  // namespace memdecay::jinja
