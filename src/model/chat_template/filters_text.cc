#include <algorithm>

#include "model/chat_template/filters.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"
#include "model/chat_template/percent_format.h"
#include "model/chat_template/python_text.h"
#include "model/chat_template/string_operations.h"
#include "model/chat_template/unicode.h"

namespace memdecay::jinja {
namespace {

/// soft_str(): a string as it is, anything else as str() has it.
Text soft_text(Runtime& runtime, const Value& value) {
  return to_text(runtime, value);
}

template <Text (*change)(Runtime&, const Text&)>
Value changed(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "this filter", arguments, {});
  return runtime.make_string(change(runtime, soft_text(runtime, input)))
      .as_markup(input.is_markup());
}

/// The title filter cuts words at other places than str.title does.
Text title_words(Runtime& runtime, const Text& text) {
  runtime.charge_characters(text.size());
  static constexpr std::u32string_view kCuts = U"-({[<";
  const auto cuts = [](char32_t c) {
    return is_space(c) || kCuts.find(c) != std::u32string_view::npos;
  };
  Text out;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && cuts(text.chars()[end]) == cuts(text.chars()[begin])) ++end;
    const Text word = text.slice(begin, end);
    out.append(upper_text(runtime, word.slice(0, 1)));
    out.append(lower_text(runtime, word.slice(1, word.size())));
    begin = end;
  }
  return out;
}

Value trim(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "trim", arguments, {"chars"});
  const Text* chars = parameters.get_not_none(0) != nullptr ? &parameters.text(0) : nullptr;
  return runtime.make_string(strip_text(soft_text(runtime, input), chars, Side::kBoth))
      .as_markup(input.is_markup());
}

Value replace(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "replace", arguments, {"old", "new", "count"}, 2);
  const std::int64_t count = parameters.get_not_none(2) ? parameters.integer(2, -1) : -1;
  return runtime.make_string(replace_text(runtime, to_text(runtime, input),
                                          to_text(runtime, parameters[0]),
                                          to_text(runtime, parameters[1]), count));
}

Value string(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "string", arguments, {});
  if (input.is_string()) return input;
  return runtime.make_string(soft_text(runtime, input));
}

Value escape(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "escape", arguments, {});
  if (input.is_markup()) return input;
  return runtime.make_string(escape_html(to_text(runtime, input))).as_markup();
}

Value forceescape(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "forceescape", arguments, {});
  return runtime.make_string(escape_html(to_text(runtime, input))).as_markup();
}

Value safe(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "safe", arguments, {});
  return runtime.make_string(to_text(runtime, input)).as_markup();
}

Value indent(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "indent", arguments, {"width", "first", "blank"});
  if (!input.is_string()) {
    if (input.is_undefined()) runtime.fail_undefined(input);
    runtime.fail_argument("indent needs a string, not a {}", kind_name(input.kind()));
  }
  Text indention(U"    ", kTemplateOrigin);
  if (parameters.given(0) && parameters[0].is_string()) {
    indention = parameters.text(0);
  } else if (parameters.given(0)) {
    indention = pad_text(runtime, Text(), parameters.integer(0, 4), U' ', Side::kLeft);
  }
  const Text newline(U"\n", kTemplateOrigin);
  Text ended = input.text();
  ended.append(newline);
  const std::vector<Text> lines = split_lines(runtime, ended, false);
  Text out;
  if (parameters.flag(1, false)) out.append(indention);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append(newline);
    const bool wanted = i > 0 && (parameters.flag(2, false) || !lines[i].empty());
    runtime.charge_characters(indention.size());
    if (wanted) out.append(indention);
    out.append(lines[i]);
  }
  return runtime.make_string(std::move(out)).as_markup(input.is_markup());
}

Value center(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "center", arguments, {"width"});
  return runtime.make_string(
      pad_text(runtime, soft_text(runtime, input), parameters.integer(0, 80), U' ', Side::kBoth));
}

Value truncate(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "truncate", arguments,
                              {"length", "killwords", "end", "leeway"});
  if (!input.is_string()) runtime.fail_unsupported("truncate of anything but a string");
  const Text& text = input.text();
  const Text end = parameters.given(2) ? parameters.text(2) : Text(U"...", kTemplateOrigin);
  const std::int64_t length = parameters.integer(0, 255);
  const std::int64_t leeway = parameters.get_not_none(3) ? parameters.integer(3, 5) : 5;
  const auto end_size = static_cast<std::int64_t>(end.size());
  if (length < end_size || leeway < 0) runtime.fail_argument("truncate got a length too small");
  const auto size = static_cast<std::int64_t>(text.size());
  if (size - leeway <= length) return input;
  Text out = text.slice(0, static_cast<std::size_t>(length - end_size));
  if (!parameters.flag(1, false)) {
    const std::size_t space = out.chars().rfind(U' ');
    if (space != std::u32string::npos) out = out.slice(0, space);
  }
  out.append(end);
  return runtime.make_string(std::move(out));
}

Value wordcount(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "wordcount", arguments, {});
  const Text text = soft_text(runtime, input);
  runtime.charge_characters(text.size());
  const auto is_word = [](char32_t c) { return c == U'_' || is_alphabetic(c) || is_numeric(c); };
  std::int64_t words = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = is_word(text.chars()[i]) && (i == 0 || !is_word(text.chars()[i - 1]));
    if (begins) ++words;
  }
  return Value::integer(words, input.origin());
}

Value format(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Value text = Value::string(soft_text(runtime, input));
  if (!arguments.positional.empty() && !arguments.keyword.empty()) {
    runtime.fail_argument("format takes either positional or keyword arguments");
  }
  if (arguments.keyword.empty()) {
    return percent_format(runtime, text, runtime.make_sequence(Kind::kTuple, arguments.positional));
  }
  auto* dict = runtime.make<DictObject>();
  for (const auto& [name, value] : arguments.keyword) {
    set_key(runtime, dict, Value::string(decode_utf8(name).value_or(U"")), value);
  }
  return percent_format(runtime, text, Value::of(dict));
}

Text json_indent(Runtime& runtime, const Value& value) {
  if (value.is_string()) return value.text();
  if (!value.is_integral()) runtime.fail_argument("tojson needs a number or a string as 'indent'");
  return pad_text(runtime, Text(), value.as_int(), U' ', Side::kLeft);
}

Value tojson(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "tojson", arguments,
                              {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = parameters.flag(0, false);
  style.sort_keys = parameters.flag(3, false);
  if (const Value* indent = parameters.get_not_none(1)) {
    style.indent = json_indent(runtime, *indent);
  }
  style.item_separator = Text(style.indent ? U"," : U", ", kTemplateOrigin);
  style.key_separator = Text(U": ", kTemplateOrigin);
  if (const Value* separators = parameters.get_not_none(2)) {
    const std::vector<Value> pair = iterate(runtime, *separators);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      runtime.fail_argument("tojson needs two strings as 'separators'");
    }
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  return runtime.make_string(json_text(runtime, input, style));
}

Value pprint(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "pprint", arguments, {});
  const bool simple = input.is_number() || input.is_none();
  if (!simple) runtime.fail_unsupported("pprint of a {}", kind_name(input.kind()));
  return runtime.make_string(repr_text(runtime, input));
}

}  // namespace

Filter find_text_filter(std::string_view name) {
  static constexpr FilterEntry kFilters[] = {
      {"upper", changed<upper_text>},
      {"lower", changed<lower_text>},
      {"capitalize", changed<capitalize_text>},
      {"title", changed<title_words>},
      {"trim", trim},
      {"replace", replace},
      {"string", string},
      {"escape", escape},
      {"e", escape},
      {"forceescape", forceescape},
      {"safe", safe},
      {"indent", indent},
      {"center", center},
      {"truncate", truncate},
      {"wordcount", wordcount},
      {"format", format},
      {"tojson", tojson},
      {"pprint", pprint},
  };
  for (const FilterEntry& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace memdecay::jinja
