#include <algorithm>

#include "model/chat_template/attributes.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"
#include "model/chat_template/percent_format.h"
#include "model/chat_template/string_operations.h"
#include "model/chat_template/unicode.h"

namespace memdecay::jinja {
namespace {

Value same_kind(Runtime& runtime, const Value& self, Text text) {
  return runtime.make_string(std::move(text)).as_markup(self.is_markup());
}

template <Text (*change)(Runtime&, const Text&)>
Value changed(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "this string method", arguments, {});
  return same_kind(runtime, self, change(runtime, self.text()));
}

Text swap_case(Runtime& runtime, const Text& text) {
  runtime.charge_characters(text.size());
  Text out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text.chars()[i];
    out.append(is_upper_case(c)   ? to_lower(text.chars(), i)
               : is_lower_case(c) ? to_upper(c)
                                  : std::u32string(1, c),
               text.origin_at(i));
  }
  return out;
}

template <Side side>
Value strip(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "strip", arguments, {"chars"});
  const Text* chars = parameters.get_not_none(0) != nullptr ? &parameters.text(0) : nullptr;
  runtime.charge_work(self.text().size() / 16);
  return same_kind(runtime, self, strip_text(self.text(), chars, side));
}

Value list_of_texts(Runtime& runtime, const Value& self, std::vector<Text> parts, Kind kind) {
  std::vector<Value> items;
  for (Text& part : parts) {
    items.push_back(Value::string(std::move(part)).as_markup(self.is_markup()));
  }
  return runtime.make_sequence(kind, std::move(items), self.origin());
}

template <std::vector<Text> (*cut)(Runtime&, const Text&, const Text*, std::int64_t)>
Value split(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "split", arguments, {"sep", "maxsplit"});
  const Text* separator = parameters.get_not_none(0) != nullptr ? &parameters.text(0) : nullptr;
  std::vector<Text> parts = cut(runtime, self.text(), separator, parameters.integer(1, -1));
  return list_of_texts(runtime, self, std::move(parts), Kind::kList);
}

Value splitlines(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "splitlines", arguments, {"keepends"});
  return list_of_texts(runtime, self, split_lines(runtime, self.text(), parameters.flag(0, false)),
                       Kind::kList);
}

template <bool from_right>
Value partition(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "partition", arguments, {"sep"}, 1);
  const Text& text = self.text();
  const Text& separator = parameters.text(0);
  if (separator.empty()) runtime.fail_argument("partition needs a separator that is not empty");
  runtime.charge_characters(text.size());
  const std::size_t found =
      from_right ? text.chars().rfind(separator.chars()) : text.chars().find(separator.chars());
  std::vector<Text> parts(3);
  if (found == std::u32string::npos) {
    parts[from_right ? 2 : 0] = text;
  } else {
    parts[0] = text.slice(0, found);
    parts[1] = text.slice(found, found + separator.size());
    parts[2] = text.slice(found + separator.size(), text.size());
  }
  return list_of_texts(runtime, self, std::move(parts), Kind::kTuple);
}

/// The [start, stop) that the arguments from `at` on name; start may lie behind the end.
std::pair<std::int64_t, std::int64_t> bounds(const Parameters& parameters, std::size_t at,
                                             std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  const auto resolve = [&](std::size_t index, std::int64_t fallback) {
    if (parameters.get_not_none(index) == nullptr) return fallback;
    const std::int64_t value = parameters.integer(index, 0);
    return value < 0 ? std::max<std::int64_t>(value + length, 0) : value;
  };
  return {resolve(at, 0), std::min(resolve(at + 1, length), length)};
}

template <bool at_end>
Value has_affix(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, at_end ? "endswith" : "startswith", arguments,
                              {"affix", "start", "end"}, 1);
  const auto range = bounds(parameters, 1, self.text().size());
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) {
      runtime.fail_argument("{} needs a string or a tuple of strings",
                            at_end ? "endswith" : "startswith");
    }
    const std::int64_t start = range.first;
    const std::int64_t stop = range.second;
    const auto size = static_cast<std::int64_t>(affix.text().size());
    runtime.charge_work(1 + affix.text().size() / 16);
    if (start > stop || size > stop - start) return false;
    const auto at = static_cast<std::size_t>(at_end ? stop - size : start);
    return self.chars().compare(at, affix.text().size(), affix.chars()) == 0;
  };
  if (!parameters[0].is(Kind::kTuple)) return Value::boolean(matches(parameters[0]));
  for (const Value& affix : parameters[0].sequence().items) {
    if (matches(affix)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

/// find, rfind, index, rindex.
template <bool from_right, bool must_be_there>
Value find(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "find", arguments, {"sub", "start", "end"}, 1);
  const auto [start, stop] = bounds(parameters, 1, self.text().size());
  const std::u32string& needle = parameters.text(0).chars();
  runtime.charge_work(1 + self.text().size() / 16);
  if (start <= stop) {
    const auto begin = static_cast<std::size_t>(start);
    const std::u32string_view within =
        std::u32string_view(self.chars()).substr(begin, static_cast<std::size_t>(stop) - begin);
    const std::size_t found = from_right ? within.rfind(needle) : within.find(needle);
    if (found != std::u32string_view::npos) {
      return Value::integer(start + static_cast<std::int64_t>(found));
    }
  }
  if (must_be_there) runtime.fail_argument("the substring is not there");
  return Value::integer(-1);
}

Value count(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "count", arguments, {"sub", "start", "end"}, 1);
  const auto [start, stop] = bounds(parameters, 1, self.text().size());
  const std::u32string& needle = parameters.text(0).chars();
  runtime.charge_work(1 + self.text().size() / 16);
  if (start > stop) return Value::integer(0);
  if (needle.empty()) return Value::integer(stop - start + 1);
  std::int64_t found = 0;
  const auto end = static_cast<std::size_t>(stop);
  for (std::size_t at = static_cast<std::size_t>(start);; at += needle.size()) {
    at = self.chars().find(needle, at);
    if (at == std::u32string::npos || at + needle.size() > end) return Value::integer(found);
    ++found;
  }
}

Value replace(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "replace", arguments, {"old", "new", "count"}, 2);
  return same_kind(runtime, self,
                   replace_text(runtime, self.text(), parameters.text(0), parameters.text(1),
                                parameters.integer(2, -1)));
}

Value join(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "join", arguments, {"iterable"}, 1);
  if (self.is_markup()) runtime.fail_unsupported("join() of a string marked safe");
  std::vector<Text> parts;
  for (const Value& item : iterate(runtime, parameters[0])) {
    if (!item.is_string()) {
      runtime.fail_argument("join needs strings, not a {}", kind_name(item.kind()));
    }
    parts.push_back(item.text());
  }
  return runtime.make_string(join_texts(runtime, self.text(), parts));
}

template <Side side>
Value pad(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "padding", arguments, {"width", "fillchar"}, 1);
  char32_t fill = U' ';
  if (parameters.given(1)) {
    if (parameters.text(1).size() != 1) runtime.fail_argument("padding needs one character");
    fill = parameters.text(1).chars()[0];
  }
  return same_kind(runtime, self,
                   pad_text(runtime, self.text(), parameters.integer(0, 0), fill, side));
}

Value zfill(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "zfill", arguments, {"width"}, 1);
  const Text& text = self.text();
  const bool is_signed = !text.empty() && (text.chars()[0] == U'-' || text.chars()[0] == U'+');
  const std::size_t sign = is_signed ? 1 : 0;
  const std::int64_t width = parameters.integer(0, 0) - static_cast<std::int64_t>(sign);
  Text out = text.slice(0, sign);
  out.append(pad_text(runtime, text.slice(sign, text.size()), width, U'0', Side::kLeft));
  return same_kind(runtime, self, std::move(out));
}

template <bool at_end>
Value remove_affix(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "removing an affix", arguments, {"affix"}, 1);
  const Text& text = self.text();
  const Text& affix = parameters.text(0);
  if (affix.size() > text.size()) return self;
  const std::size_t at = at_end ? text.size() - affix.size() : 0;
  if (text.chars().compare(at, affix.size(), affix.chars()) != 0) return self;
  return same_kind(runtime, self,
                   at_end ? text.slice(0, at) : text.slice(affix.size(), text.size()));
}

template <bool (*has)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "this string test", arguments, {});
  runtime.charge_work(self.text().size() / 16);
  const std::u32string& chars = self.chars();
  return Value::boolean(!chars.empty() && std::all_of(chars.begin(), chars.end(), has));
}

bool is_alphanumeric(char32_t c) {
  return is_alphabetic(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
}

/// isupper, islower: no cased character of another case, and one of this.
template <bool (*wanted)(char32_t), bool (*unwanted)(char32_t)>
Value is_of_case(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "this string test", arguments, {});
  runtime.charge_work(self.text().size() / 16);
  const std::u32string& chars = self.chars();
  const bool has_title = std::any_of(chars.begin(), chars.end(), [](char32_t c) {
    return is_cased(c) && !is_upper_case(c) && !is_lower_case(c) && to_title(c)[0] == c &&
           to_upper(c)[0] != c;
  });
  return Value::boolean(!has_title && std::any_of(chars.begin(), chars.end(), wanted) &&
                        std::none_of(chars.begin(), chars.end(), unwanted));
}

Value is_title(Runtime& runtime, const Value& self, const CallArguments& arguments) {
  const Parameters parameters(runtime, "istitle", arguments, {});
  runtime.charge_work(self.text().size() / 16);
  bool in_word = false;
  bool any = false;
  for (const char32_t c : self.chars()) {
    const bool is_lower = is_lower_case(c);
    const bool starts = is_upper_case(c) || (is_cased(c) && !is_lower && to_title(c)[0] == c);
    if ((starts && in_word) || (is_lower && !in_word)) return Value::boolean(false);
    in_word = starts || is_lower;
    any = any || in_word;
  }
  return Value::boolean(any);
}

struct MethodEntry {
  std::string_view name;
  Method method;
};

}  // namespace

Method find_string_method(std::string_view name) {
  static constexpr MethodEntry kMethods[] = {
      {"capitalize", changed<capitalize_text>},
      {"center", pad<Side::kBoth>},
      {"count", count},
      {"endswith", has_affix<true>},
      {"find", find<false, false>},
      {"format", brace_format},
      {"index", find<false, true>},
      {"isalnum", all_are<is_alphanumeric>},
      {"isalpha", all_are<is_alphabetic>},
      {"isdecimal", all_are<is_decimal>},
      {"isdigit", all_are<is_digit>},
      {"islower", is_of_case<is_lower_case, is_upper_case>},
      {"isnumeric", all_are<is_numeric>},
      {"isspace", all_are<is_space>},
      {"istitle", is_title},
      {"isupper", is_of_case<is_upper_case, is_lower_case>},
      {"join", join},
      {"ljust", pad<Side::kRight>},
      {"lower", changed<lower_text>},
      {"lstrip", strip<Side::kLeft>},
      {"partition", partition<false>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"replace", replace},
      {"rfind", find<true, false>},
      {"rindex", find<true, true>},
      {"rjust", pad<Side::kLeft>},
      {"rpartition", partition<true>},
      {"rsplit", split<split_text_right>},
      {"rstrip", strip<Side::kRight>},
      {"split", split<split_text>},
      {"splitlines", splitlines},
      {"startswith", has_affix<false>},
      {"strip", strip<Side::kBoth>},
      {"swapcase", changed<swap_case>},
      {"title", changed<title_text>},
      {"upper", changed<upper_text>},
      {"zfill", zfill},
  };
  const auto* found = std::lower_bound(
      std::begin(kMethods), std::end(kMethods), name,
      [](const MethodEntry& entry, std::string_view wanted) { return entry.name < wanted; });
  return found != std::end(kMethods) && found->name == name ? found->method : nullptr;
}

}  // namespace memdecay::jinja
