#include "model/chat_template/operators.h"

#include <algorithm>
#include <cmath>

#include "model/chat_template/numbers.h"
#include "model/chat_template/percent_format.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {
namespace {

[[noreturn]] void fail_operands(Runtime& runtime, std::string_view op, const Value& a,
                                const Value& b) {
  if (a.is_undefined()) runtime.fail_undefined(a);
  if (b.is_undefined()) runtime.fail_undefined(b);
  runtime.fail_argument("'{}' is not supported between {} and {}", op, kind_name(a.kind()),
                        kind_name(b.kind()));
}

bool equal_sequences(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equals(runtime, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, const DictObject& a, const DictObject& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = find_key(runtime, b, key);
    if (other == nullptr || !equals(runtime, value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const RangeObject& a, const RangeObject& b) {
  if (a.length != b.length) return false;
  if (a.length == 0) return true;
  return a.start == b.start && (a.length == 1 || a.step == b.step);
}

Value repeat(Runtime& runtime, const Value& value, std::int64_t count) {
  count = std::max<std::int64_t>(count, 0);
  if (value.is_string()) {
    const Text& text = value.text();
    Text out;
    if (text.empty()) return runtime.make_string(out);
    for (std::int64_t i = 0; i < count; ++i) {
      runtime.charge_characters(text.size());
      out.append(text);
    }
    return Value::string(std::move(out)).as_markup(value.is_markup());
  }
  std::vector<Value> items;
  const std::vector<Value>& source = value.sequence().items;
  if (source.empty()) count = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    runtime.charge_work(source.size());
    items.insert(items.end(), source.begin(), source.end());
  }
  return runtime.make_sequence(value.kind(), std::move(items), value.origin());
}

Value concatenate(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_string()) {
    const bool markup = a.is_markup() || b.is_markup();
    Text out = markup && !a.is_markup() ? escape_html(a.text()) : a.text();
    out.append(markup && !b.is_markup() ? escape_html(b.text()) : b.text());
    return runtime.make_string(std::move(out)).as_markup(markup);
  }
  std::vector<Value> items = a.sequence().items;
  items.insert(items.end(), b.sequence().items.begin(), b.sequence().items.end());
  return runtime.make_sequence(a.kind(), std::move(items), runtime.mix(a.origin(), b.origin()));
}

bool is_repeatable(const Value& value) {
  return value.is_string() || value.is(Kind::kList) || value.is(Kind::kTuple);
}

/// -1, 0, 1 as a is below, equal to, above b; 2 where they have no order (NaN).
int order_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
  }
  return order_mixed(a, b);
}

/// Python's order of a and b for `op`; same meaning as order_numbers.
int order(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  const Runtime::Level level(runtime);
  runtime.charge_work(1);
  if (a.is_number() && b.is_number()) return order_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    runtime.charge_work(std::min(a.text().size(), b.text().size()) / 64);
    const int result = a.chars().compare(b.chars());
    return result < 0 ? -1 : result > 0 ? 1 : 0;
  }
  const bool sequences = a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple));
  if (!sequences) fail_operands(runtime, op, a, b);
  const std::vector<Value>& left = a.sequence().items;
  const std::vector<Value>& right = b.sequence().items;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (!equals(runtime, left[i], right[i])) return order(runtime, op, left[i], right[i]);
  }
  return left.size() < right.size() ? -1 : left.size() > right.size() ? 1 : 0;
}

}  // namespace

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_float() != 0.0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
      return !value.sequence().items.empty();
    case Kind::kDict:
      return !value.dict().items.empty();
    case Kind::kRange:
      return value.range().length != 0;
    case Kind::kIterator:
    case Kind::kNamespace:
    case Kind::kCallable:
    case Kind::kLoop:
      return true;
  }
  return true;
}

bool equals(Runtime& runtime, const Value& a, const Value& b) {
  const Runtime::Level level(runtime);
  runtime.charge_work(1);
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      runtime.charge_work(a.text().size() / 64);
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
      return a.object() == b.object() ||
             equal_sequences(runtime, a.sequence().items, b.sequence().items);
    case Kind::kDict:
      return a.object() == b.object() || equal_dicts(runtime, a.dict(), b.dict());
    case Kind::kRange:
      return equal_ranges(a.range(), b.range());
    case Kind::kDictView:
      if (a.object() == b.object()) return true;
      runtime.fail_unsupported("comparing dict views with each other");
    default:
      return a.object() == b.object();
  }
}

bool less(Runtime& runtime, const Value& a, const Value& b) {
  return order(runtime, "<", a, b) == -1;
}

bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equals(runtime, a, b);
  if (op == "!=") return !equals(runtime, a, b);
  if (op == "in") return contains(runtime, b, a);
  if (op == "not in") return !contains(runtime, b, a);
  const int result = order(runtime, op, a, b);
  if (op == "<") return result == -1;
  if (op == "<=") return result == -1 || result == 0;
  if (op == ">") return result == 1;
  return result == 1 || result == 0;
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) {
        runtime.fail_argument("'in <string>' requires a string on its left, not {}",
                              kind_name(item.kind()));
      }
      runtime.charge_work(1 + container.text().size() / 16);
      return container.chars().find(item.chars()) != std::u32string::npos;
    case Kind::kDict:
      return find_key(runtime, container.dict(), item) != nullptr;
    case Kind::kDictView:
      if (std::string_view(container.sequence().view) == "dict_keys") {
        require_hashable(runtime, item);
      }
      [[fallthrough]];
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kIterator:
    case Kind::kRange:
    case Kind::kUndefined:
    case Kind::kLoop:
      for (const Value& candidate : iterate(runtime, container)) {
        if (equals(runtime, candidate, item)) return true;
      }
      return false;
    default:
      runtime.fail_argument("a {} cannot be searched with 'in'", kind_name(container.kind()));
  }
}

Value arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return number_arithmetic(runtime, op, a, b);
  if (op == "+") {
    const bool joins = a.kind() == b.kind() && is_repeatable(a);
    if (joins) return concatenate(runtime, a, b);
  }
  if (op == "*" && is_repeatable(a) && b.is_integral()) return repeat(runtime, a, b.as_int());
  if (op == "*" && is_repeatable(b) && a.is_integral()) return repeat(runtime, b, a.as_int());
  if (op == "%" && a.is_string()) return percent_format(runtime, a, b);
  if (op == "-" && (a.is(Kind::kDictView) || b.is(Kind::kDictView))) {
    runtime.fail_unsupported("the difference of dict views");
  }
  fail_operands(runtime, op, a, b);
}

Value negate(Runtime& runtime, const Value& value, bool negative) {
  if (value.is(Kind::kFloat)) {
    const double number = value.as_float();
    return Value::floating(negative ? -number : number, value.origin());
  }
  if (value.is_integral()) {
    if (!negative) return Value::integer(value.as_int(), value.origin());
    return number_arithmetic(runtime, "-", Value::integer(0), value);
  }
  if (value.is_undefined()) runtime.fail_undefined(value);
  runtime.fail_argument("a {} has no sign", kind_name(value.kind()));
}

std::int64_t length_of(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<std::int64_t>(value.text().size());
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
      return static_cast<std::int64_t>(value.sequence().items.size());
    case Kind::kDict:
      return static_cast<std::int64_t>(value.dict().items.size());
    case Kind::kRange:
      return value.range().length;
    case Kind::kLoop:
      return static_cast<std::int64_t>(value.loop().items.size());
    default:
      runtime.fail_argument("a {} has no length", kind_name(value.kind()));
  }
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  std::vector<Value> out;
  switch (value.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kString:
      runtime.charge_characters(4 * value.text().size());
      for (std::size_t i = 0; i < value.text().size(); ++i) {
        out.push_back(Value::string(value.text().slice(i, i + 1)));
      }
      break;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDictView:
      out = value.sequence().items;
      break;
    case Kind::kIterator: {
      SequenceObject& sequence = value.sequence();
      out.assign(sequence.items.begin() + static_cast<std::ptrdiff_t>(sequence.cursor),
                 sequence.items.end());
      sequence.cursor = sequence.items.size();
      break;
    }
    case Kind::kDict:
      for (const auto& [key, item] : value.dict().items) out.push_back(key);
      break;
    case Kind::kRange:
      runtime.charge_work(static_cast<std::uint64_t>(value.range().length));
      for (std::int64_t i = 0; i < value.range().length; ++i) {
        out.push_back(Value::integer(value.range().at(i), value.origin()));
      }
      break;
    case Kind::kLoop:
      runtime.fail_unsupported("iterating over the loop variable");
    default:
      runtime.fail_argument("a {} cannot be iterated over", kind_name(value.kind()));
  }
  runtime.charge_work(out.size());
  return out;
}

void require_hashable(Runtime& runtime, const Value& key) {
  if (key.is(Kind::kList) || key.is(Kind::kDict)) {
    runtime.fail_argument("a {} cannot be the key of a dict", kind_name(key.kind()));
  }
  if (!key.is(Kind::kTuple)) return;
  const Runtime::Level level(runtime);
  for (const Value& item : key.sequence().items) require_hashable(runtime, item);
}

const Value* find_key(const DictObject& dict, std::u32string_view key) {
  for (const auto& [candidate, value] : dict.items) {
    if (candidate.is_string() && candidate.chars() == key) return &value;
  }
  return nullptr;
}

const Value* find_key(Runtime& runtime, const DictObject& dict, const Value& key) {
  runtime.charge_work(1 + dict.items.size() / 16);
  if (key.is_string()) return find_key(dict, key.chars());
  require_hashable(runtime, key);
  for (const auto& [candidate, value] : dict.items) {
    if (equals(runtime, candidate, key)) return &value;
  }
  return nullptr;
}

void set_key(Runtime& runtime, DictObject* dict, const Value& key, const Value& value) {
  require_hashable(runtime, key);
  runtime.charge_work(1 + dict->items.size() / 16);
  for (auto& [candidate, slot] : dict->items) {
    if (equals(runtime, candidate, key)) {
      slot = value;
      return;
    }
  }
  dict->items.emplace_back(key, value);
}

}  // namespace memdecay::jinja
