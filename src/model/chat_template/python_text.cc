#include "model/chat_template/python_text.h"

#include <algorithm>
#include <cmath>

#include "model/chat_template/numbers.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/stable_order.h"
#include "model/chat_template/unicode.h"

namespace memdecay::jinja {
namespace {

void append_ascii(Text* out, std::string_view ascii, OriginId origin) {
  out->append(widen(ascii), origin);
}

/// The closing quote and the opening one take the origin of the text they are nearest to.
OriginId first_origin(const Value& value) {
  return value.text().empty() ? value.origin() : value.text().origin_at(0);
}

void append_string_repr(Text* out, const Value& value) {
  const Text& text = value.text();
  const bool has_single = text.chars().find(U'\'') != std::u32string::npos;
  const bool has_double = text.chars().find(U'"') != std::u32string::npos;
  const char32_t quote = has_single && !has_double ? U'"' : U'\'';
  out->append(quote, first_origin(value));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text.chars()[i];
    const OriginId origin = text.origin_at(i);
    const auto code = static_cast<std::uint32_t>(c);
    if (c == quote || c == U'\\') {
      out->append(U'\\', origin);
      out->append(c, origin);
    } else if (c == U'\n') {
      out->append(U"\\n", origin);
    } else if (c == U'\r') {
      out->append(U"\\r", origin);
    } else if (c == U'\t') {
      out->append(U"\\t", origin);
    } else if (is_printable(c)) {
      out->append(c, origin);
    } else {
      append_ascii(out,
                   c < 0x100     ? fmt::format("\\x{:02x}", code)
                   : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                                 : fmt::format("\\U{:08x}", code),
                   origin);
    }
  }
  out->append(quote, text.empty() ? value.origin() : text.origin_at(text.size() - 1));
}

void append_repr(Runtime& runtime, Text* out, const Value& value);

void append_items(Runtime& runtime, Text* out, const std::vector<Value>& items, OriginId origin) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) append_ascii(out, ", ", origin);
    first = false;
    append_repr(runtime, out, item);
  }
}

void append_sequence_repr(Runtime& runtime, Text* out, const Value& value) {
  const SequenceObject& sequence = value.sequence();
  const OriginId origin = value.origin();
  if (value.is(Kind::kIterator)) runtime.fail_unsupported("printing a generator");
  const bool tuple = value.is(Kind::kTuple);
  if (value.is(Kind::kDictView)) append_ascii(out, std::string(sequence.view) + "(", origin);
  append_ascii(out, tuple ? "(" : "[", origin);
  append_items(runtime, out, sequence.items, origin);
  if (tuple && sequence.items.size() == 1) append_ascii(out, ",", origin);
  append_ascii(out, tuple ? ")" : "]", origin);
  if (value.is(Kind::kDictView)) append_ascii(out, ")", origin);
}

void append_dict_repr(Runtime& runtime, Text* out, const Value& value) {
  const OriginId origin = value.origin();
  if (value.is(Kind::kNamespace)) append_ascii(out, "<Namespace ", origin);
  append_ascii(out, "{", origin);
  bool first = true;
  for (const auto& [key, item] : value.dict().items) {
    if (!first) append_ascii(out, ", ", origin);
    first = false;
    append_repr(runtime, out, key);
    append_ascii(out, ": ", origin);
    append_repr(runtime, out, item);
  }
  append_ascii(out, "}", origin);
  if (value.is(Kind::kNamespace)) append_ascii(out, ">", origin);
}

std::string range_repr(const RangeObject& range) {
  return range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                         : fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

void append_repr(Runtime& runtime, Text* out, const Value& value) {
  const Runtime::Level level(runtime);
  runtime.charge_work(1);
  const OriginId origin = value.origin();
  switch (value.kind()) {
    case Kind::kUndefined:
      return append_ascii(out, "Undefined", origin);
    case Kind::kNone:
      return append_ascii(out, "None", origin);
    case Kind::kBool:
      return append_ascii(out, value.as_bool() ? "True" : "False", origin);
    case Kind::kInt:
      return append_ascii(out, fmt::format("{}", value.as_int()), origin);
    case Kind::kFloat:
      return append_ascii(out, float_repr(value.as_float()), origin);
    case Kind::kString:
      runtime.charge_characters(value.text().size());
      if (value.is_markup()) append_ascii(out, "Markup(", origin);
      append_string_repr(out, value);
      if (value.is_markup()) append_ascii(out, ")", origin);
      return;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
    case Kind::kIterator:
      return append_sequence_repr(runtime, out, value);
    case Kind::kDict:
    case Kind::kNamespace:
      return append_dict_repr(runtime, out, value);
    case Kind::kRange:
      return append_ascii(out, range_repr(value.range()), origin);
    case Kind::kLoop:
      return append_ascii(
          out,
          fmt::format("<LoopContext {}/{}>", value.loop().index + 1, value.loop().items.size()),
          origin);
    case Kind::kCallable: {
      const std::string text = value.callable().repr();
      if (text.empty()) runtime.fail_unsupported("printing a function or method");
      return append_ascii(out, text, origin);
    }
  }
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style, Text* out)
      : runtime_(runtime), style_(style), out_(out) {}

  void write(const Value& value, std::size_t depth) {
    const Runtime::Level level(runtime_);
    runtime_.charge_work(1);
    switch (value.kind()) {
      case Kind::kString:
        return write_string(value);
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
        return append_ascii(out_, scalar(value), value.origin());
      case Kind::kList:
      case Kind::kTuple:
        return write_list(value, depth);
      case Kind::kDict:
        return write_dict(value, depth);
      default:
        runtime_.fail_argument("a {} cannot be written as JSON", kind_name(value.kind()));
    }
  }

 private:
  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (value.is(Kind::kBool)) return value.as_bool() ? "true" : "false";
    if (value.is(Kind::kInt)) return fmt::format("{}", value.as_int());
    const double number = value.as_float();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return float_repr(number);
  }

  void write_escaped(char32_t c, OriginId origin) {
    const auto unicode = [&](std::uint32_t unit) {
      append_ascii(out_, fmt::format("\\u{:04x}", unit), origin);
    };
    const auto code = static_cast<std::uint32_t>(c);
    static constexpr std::string_view kShort = "\"\\\n\r\t\f\b";
    static constexpr std::string_view kLetters = "\"\\nrtfb";
    const std::size_t at = c < 0x80 ? kShort.find(static_cast<char>(c)) : std::string_view::npos;
    if (at != std::string_view::npos) {
      out_->append(U'\\', origin);
      out_->append(static_cast<unsigned char>(kLetters[at]), origin);
    } else if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F && c < 0x10000)) {
      unicode(code);
    } else if (style_.ensure_ascii && c >= 0x10000) {
      unicode(0xD800 + ((code - 0x10000) >> 10U));
      unicode(0xDC00 + ((code - 0x10000) & 0x3FFU));
    } else {
      out_->append(c, origin);
    }
  }

  void write_string(const Value& value) {
    const Text& text = value.text();
    runtime_.charge_characters(text.size());
    out_->append(U'"', first_origin(value));
    for (std::size_t i = 0; i < text.size(); ++i) {
      write_escaped(text.chars()[i], text.origin_at(i));
    }
    out_->append(U'"', text.empty() ? value.origin() : text.origin_at(text.size() - 1));
  }

  void new_line(std::size_t depth, OriginId origin) {
    if (!style_.indent) return;
    runtime_.charge_characters(1 + depth * style_.indent->size());
    out_->append(U'\n', origin);
    for (std::size_t i = 0; i < depth; ++i) out_->append(style_.indent->chars(), origin);
  }

  void write_list(const Value& value, std::size_t depth) {
    const OriginId origin = value.origin();
    const std::vector<Value>& items = value.sequence().items;
    out_->append(U'[', origin);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_->append(style_.item_separator.chars(), origin);
      new_line(depth + 1, origin);
      write(items[i], depth + 1);
    }
    if (!items.empty()) new_line(depth, origin);
    out_->append(U']', origin);
  }

  void write_key(const Value& key) {
    if (key.is_string()) return write_string(key);
    if (!key.is_number() && !key.is_none()) {
      runtime_.fail_argument("a {} cannot be a key in JSON", kind_name(key.kind()));
    }
    append_ascii(out_, "\"" + scalar(key) + "\"", key.origin());
  }

  void write_dict(const Value& value, std::size_t depth) {
    const OriginId origin = value.origin();
    std::vector<std::pair<Value, Value>> items = value.dict().items;
    if (style_.sort_keys) {
      runtime_.charge_work(items.size() * items.size() / 64);
      stable_order(&items, [this](const auto& a, const auto& b) {
        return less(runtime_, a.first, b.first);
      });
    }
    out_->append(U'{', origin);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_->append(style_.item_separator.chars(), origin);
      new_line(depth + 1, origin);
      write_key(items[i].first);
      out_->append(style_.key_separator.chars(), origin);
      write(items[i].second, depth + 1);
    }
    if (!items.empty()) new_line(depth, origin);
    out_->append(U'}', origin);
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  Text* out_;
};

}  // namespace

Text to_text(Runtime& runtime, const Value& value) {
  if (value.is_string()) return value.text();
  if (value.is_undefined()) return {};
  return repr_text(runtime, value);
}

Text repr_text(Runtime& runtime, const Value& value) {
  Text out;
  append_repr(runtime, &out, value);
  runtime.charge_characters(out.size());
  return out;
}

Text json_text(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Text out;
  JsonWriter(runtime, style, &out).write(value, 0);
  runtime.charge_characters(out.size());
  return out;
}

Text escape_html(const Text& text) {
  Text out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text.chars()[i];
    const OriginId origin = text.origin_at(i);
    const std::u32string_view entity = c == U'&'    ? U"&amp;"
                                       : c == U'<'  ? U"&lt;"
                                       : c == U'>'  ? U"&gt;"
                                       : c == U'\'' ? U"&#39;"
                                       : c == U'"'  ? U"&#34;"
                                                    : U"";
    entity.empty() ? out.append(c, origin) : out.append(entity, origin);
  }
  return out;
}

}  // namespace memdecay::jinja
