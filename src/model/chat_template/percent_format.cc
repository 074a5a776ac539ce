#include "model/chat_template/percent_format.h"

#include <algorithm>

#include "model/chat_template/attributes.h"
#include "model/chat_template/number_format.h"
#include "model/chat_template/numbers.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {
namespace {

constexpr std::int64_t kMaxWidth = 100'000;

void append_padded(Text* out, const Text& body, std::size_t width, char32_t align, char32_t fill) {
  const std::size_t missing = width > body.size() ? width - body.size() : 0;
  const std::size_t before = align == U'>' ? missing : align == U'^' ? missing / 2 : 0;
  out->append(std::u32string(before, fill), kTemplateOrigin);
  out->append(body);
  out->append(std::u32string(missing - before, fill), kTemplateOrigin);
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const Value& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments) {}

  Text run() {
    while (at_ < format_.size()) {
      const std::size_t percent = format_.chars().find(U'%', at_);
      const std::size_t end = percent == std::u32string::npos ? format_.size() : percent;
      out_.append_range(format_, at_, end);
      at_ = end;
      if (at_ < format_.size()) conversion();
    }
    const bool is_tuple = arguments_.is(Kind::kTuple);
    const std::size_t given = is_tuple ? arguments_.sequence().items.size() : 1;
    const bool may_be_left = arguments_.is(Kind::kDict) || arguments_.is(Kind::kList) ||
                             arguments_.is(Kind::kRange) || arguments_.is_undefined();
    if (used_ < given && !used_key_ && !(may_be_left && !is_tuple)) {
      runtime_.fail_argument("not all arguments were used by the format");
    }
    return std::move(out_);
  }

 private:
  char32_t peek() {
    if (at_ >= format_.size()) runtime_.fail_argument("a format ends within a conversion");
    return format_.chars()[at_];
  }

  Value next_argument() {
    if (arguments_.is(Kind::kTuple)) {
      const std::vector<Value>& items = arguments_.sequence().items;
      if (used_ >= items.size()) runtime_.fail_argument("not enough arguments for the format");
      return items[used_++];
    }
    if (used_++ > 0) runtime_.fail_argument("not enough arguments for the format");
    return arguments_;
  }

  Value keyed_argument() {
    ++at_;
    std::size_t depth = 1;
    const std::size_t begin = at_;
    while (depth > 0) {
      const char32_t c = peek();
      if (c == U'(') ++depth;
      if (c == U')') --depth;
      ++at_;
    }
    if (!arguments_.is(Kind::kDict)) runtime_.fail_argument("the format needs a dict");
    const Value* found = find_key(
        arguments_.dict(), std::u32string_view(format_.chars()).substr(begin, at_ - 1 - begin));
    if (found == nullptr) runtime_.fail_argument("the format names a key that is not there");
    used_key_ = true;
    return *found;
  }

  std::int64_t number_or_star() {
    if (peek() == U'*') {
      ++at_;
      const Value value = next_argument();
      if (!value.is_integral()) runtime_.fail_argument("* needs an integer in a format");
      return std::clamp<std::int64_t>(value.as_int(), -kMaxWidth, kMaxWidth);
    }
    std::int64_t number = 0;
    while (peek() >= U'0' && peek() <= U'9') {
      number = std::min(number * 10 + static_cast<std::int64_t>(peek() - U'0'), kMaxWidth);
      ++at_;
    }
    return number;
  }

  void conversion() {
    const OriginId origin = format_.origin_at(at_);
    ++at_;
    const bool keyed = peek() == U'(';
    Value value = keyed ? keyed_argument() : Value();
    bool left = false;
    bool zero = false;
    NumberStyle style;
    for (;; ++at_) {
      const char32_t c = peek();
      if (c == U'-') {
        left = true;
      } else if (c == U'0') {
        zero = true;
      } else if (c == U'+') {
        style.sign = '+';
      } else if (c == U' ') {
        if (style.sign == '-') style.sign = ' ';
      } else if (c == U'#') {
        style.alternate = true;
      } else {
        break;
      }
    }
    std::int64_t width = number_or_star();
    if (width < 0) {
      left = true;
      width = -width;
    }
    if (peek() == U'.') {
      ++at_;
      style.precision = static_cast<int>(std::max<std::int64_t>(number_or_star(), 0));
    }
    while (peek() == U'l' || peek() == U'h' || peek() == U'L') ++at_;
    const char32_t type = peek();
    ++at_;
    if (type == U'%') return out_.append(U'%', origin);
    if (!keyed) value = next_argument();
    const Text body = convert(type, value, &style, zero && !left, static_cast<std::size_t>(width));
    runtime_.charge_characters(body.size() + static_cast<std::size_t>(width));
    append_padded(&out_, body, static_cast<std::size_t>(width), left ? U'<' : U'>', U' ');
  }

  Text convert(char32_t type, const Value& value, NumberStyle* style, bool zero,
               std::size_t width) {
    if (type == U's' || type == U'r') {
      const Text text = type == U's' ? to_text(runtime_, value) : repr_text(runtime_, value);
      const auto limit = static_cast<std::size_t>(std::max(style->precision, 0));
      return style->precision < 0 || limit >= text.size() ? text : text.slice(0, limit);
    }
    if (type == U'c') {
      if (value.is_string() && value.text().size() == 1) return value.text();
      runtime_.fail_unsupported("%c with anything but one character");
    }
    static constexpr std::u32string_view kTypes = U"diuxXoeEfFgG";
    if (kTypes.find(type) == std::u32string_view::npos) {
      runtime_.fail_argument("unknown conversion in a format");
    }
    if (value.is_undefined()) runtime_.fail_undefined(value);
    if (!value.is_number()) {
      runtime_.fail_argument("a format needs a number, not a {}", kind_name(value.kind()));
    }
    style->type = type == U'i' || type == U'u' ? 'd' : static_cast<char>(type);
    Value number = value;
    static constexpr std::string_view kIntegerTypes = "dxXo";
    if (kIntegerTypes.find(style->type) != std::string_view::npos) {
      if (value.is(Kind::kFloat)) {
        if (style->type != 'd') runtime_.fail_argument("a format needs an integer, not a float");
        number = Value::integer(truncate_float(runtime_, value.as_float()), value.origin());
      }
      if (style->precision >= 0) runtime_.fail_unsupported("a precision for an integer");
    }
    std::string digits = format_number(runtime_, number, *style);
    if (zero) digits = pad_with_zeros(std::move(digits), width);
    return Text(widen(digits), value.origin());
  }

  Runtime& runtime_;
  const Text& format_;
  const Value& arguments_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  bool used_key_ = false;
  Text out_;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Text& format, const CallArguments& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments) {}

  Text run() {
    const std::u32string& chars = format_.chars();
    for (std::size_t i = 0; i < chars.size();) {
      const bool doubled = i + 1 < chars.size() && chars[i] == chars[i + 1];
      if (chars[i] != U'{' && chars[i] != U'}') {
        out_.append(chars[i], format_.origin_at(i));
        ++i;
      } else if (doubled) {
        out_.append(chars[i], format_.origin_at(i));
        i += 2;
      } else if (chars[i] == U'}') {
        runtime_.fail_argument("a single '}}' in a format");
      } else {
        const std::size_t end = chars.find_first_of(U"{}", i + 1);
        if (end == std::u32string::npos) runtime_.fail_argument("a format has an open '{{'");
        if (chars[end] == U'{') runtime_.fail_unsupported("a field within a field of a format");
        field(std::u32string_view(chars).substr(i + 1, end - i - 1));
        i = end + 1;
      }
    }
    return std::move(out_);
  }

 private:
  void field(std::u32string_view body) {
    const std::size_t colon = body.find(U':');
    std::u32string_view name = body.substr(0, colon);
    const std::u32string_view spec =
        colon == std::u32string_view::npos ? U"" : body.substr(colon + 1);
    char32_t conversion = 0;
    if (const std::size_t mark = name.find(U'!'); mark != std::u32string_view::npos) {
      if (name.size() != mark + 2) runtime_.fail_argument("a format has a bad conversion");
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    Value value = lookup(name);
    if (conversion == U'r') {
      value = Value::string(repr_text(runtime_, value));
    } else if (conversion == U's') {
      value = Value::string(to_text(runtime_, value));
    } else if (conversion != 0) {
      runtime_.fail_unsupported("a conversion other than !r and !s in a format");
    }
    append_formatted(value, spec);
  }

  Value first_value(std::u32string_view first) {
    const bool numbered =
        !first.empty() && first.find_first_not_of(U"0123456789") == std::u32string_view::npos;
    if (first.empty() || numbered) {
      std::size_t index = 0;
      if (numbered) {
        if (automatic_ > 0) {
          runtime_.fail_argument("a format mixes numbered and unnumbered fields");
        }
        manual_ = true;
        if (first.size() > 6) runtime_.fail_argument("a format numbers a field that is not there");
        for (const char32_t c : first) index = index * 10 + (c - U'0');
      } else {
        if (manual_) runtime_.fail_argument("a format mixes numbered and unnumbered fields");
        index = automatic_++;
      }
      if (index >= arguments_.positional.size()) {
        runtime_.fail_argument("a format numbers a field that is not there");
      }
      return arguments_.positional[index];
    }
    const std::string name = encode_utf8(first);
    for (const auto& [key, value] : arguments_.keyword) {
      if (key == name) return value;
    }
    runtime_.fail_argument("a format names '{}', which is not there", name);
  }

  Value lookup(std::u32string_view name) {
    std::size_t at = std::min(name.find_first_of(U".["), name.size());
    Value value = first_value(name.substr(0, at));
    while (at < name.size()) {
      if (name[at] == U'.') {
        const std::size_t end = std::min(name.find_first_of(U".[", at + 1), name.size());
        value = get_attribute(runtime_, value, encode_utf8(name.substr(at + 1, end - at - 1)));
        at = end;
        continue;
      }
      const std::size_t end = name.find(U']', at);
      if (end == std::u32string_view::npos) runtime_.fail_argument("a format misses a ']'");
      const Text key(std::u32string(name.substr(at + 1, end - at - 1)), kTemplateOrigin);
      const std::optional<Value> index = parse_int(runtime_, key, 10);
      value = get_item(runtime_, value, index ? *index : Value::string(key));
      at = end + 1;
    }
    return value;
  }

  void append_formatted(const Value& value, std::u32string_view spec) {
    if (spec.empty()) return out_.append(to_text(runtime_, value));
    char32_t align = value.is_number() ? U'>' : U'<';
    char32_t fill = U' ';
    NumberStyle style;
    std::size_t at = 0;
    static constexpr std::u32string_view kAligns = U"<>^";
    const auto is_align = [](char32_t c) { return kAligns.find(c) != std::u32string_view::npos; };
    if (spec.size() > 1 && is_align(spec[1])) {
      fill = spec[0];
      align = spec[1];
      at = 2;
    } else if (is_align(spec[0])) {
      align = spec[0];
      at = 1;
    }
    const auto take = [&](char32_t c) { return at < spec.size() && spec[at] == c ? ++at : 0; };
    if (take(U'+')) style.sign = '+';
    if (take(U' ')) style.sign = ' ';
    take(U'-');
    if (take(U'#')) style.alternate = true;
    const bool zero = take(U'0') != 0;
    const auto number = [&] {
      std::int64_t out = 0;
      for (; at < spec.size() && spec[at] >= U'0' && spec[at] <= U'9'; ++at) {
        out = std::min(out * 10 + static_cast<std::int64_t>(spec[at] - U'0'), kMaxWidth);
      }
      return out;
    };
    const auto width = static_cast<std::size_t>(number());
    if (take(U',')) style.grouped = true;
    if (take(U'.')) style.precision = static_cast<int>(number());
    const char32_t type = at < spec.size() ? spec[at++] : 0;
    if (at != spec.size() || type > 0x7F) runtime_.fail_unsupported("this format specification");
    style.type = static_cast<char>(type);
    runtime_.charge_characters(width);
    append_padded(&out_, format_value(value, style, zero, width), width, align, fill);
  }

  Text format_value(const Value& value, const NumberStyle& style, bool zero, std::size_t width) {
    if (value.is_string() && (style.type == 0 || style.type == 's')) {
      if (zero || style.grouped || style.alternate || style.sign != '-') {
        runtime_.fail_unsupported("a format for numbers on a string");
      }
      const Text& text = value.text();
      if (style.precision < 0) return text;
      return text.slice(0, std::min(text.size(), static_cast<std::size_t>(style.precision)));
    }
    const bool integer_type = std::string_view("dxXob").find(style.type) != std::string_view::npos;
    const bool float_type = std::string_view("eEfFgG%").find(style.type) != std::string_view::npos;
    const bool plain = style.type == 0;
    const bool fits = value.is(Kind::kInt) ? (plain && style.precision < 0) || float_type ||
                                                 (integer_type && style.precision < 0)
                                           : value.is(Kind::kFloat) && (plain || float_type);
    if (!fits)
      runtime_.fail_unsupported("this format specification for a {}", kind_name(value.kind()));
    std::string digits = format_number(runtime_, value, style);
    if (zero) digits = pad_with_zeros(std::move(digits), width);
    return Text(widen(digits), value.origin());
  }

  Runtime& runtime_;
  const Text& format_;
  const CallArguments& arguments_;
  std::size_t automatic_ = 0;
  bool manual_ = false;
  Text out_;
};

}  // namespace

Value percent_format(Runtime& runtime, const Value& format, const Value& arguments) {
  if (format.is_markup()) runtime.fail_unsupported("% on a string marked safe");
  return runtime.make_string(PercentFormatter(runtime, format.text(), arguments).run());
}

Value brace_format(Runtime& runtime, const Value& format, const CallArguments& arguments) {
  if (format.is_markup()) runtime.fail_unsupported("format() on a string marked safe");
  return runtime.make_string(BraceFormatter(runtime, format.text(), arguments).run());
}

}  // namespace memdecay::jinja
