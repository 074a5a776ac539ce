#include "model/chat_template/attributes.h"

#include <algorithm>

#include "model/chat_template/container_methods.h"
#include "model/chat_template/loop_members.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {
namespace {

class BoundMethod : public Callable {
 public:
  BoundMethod(Value self, Method method) : self_(std::move(self)), method_(method) {}
  Value call(Runtime& runtime, CallArguments arguments) override {
    return method_(runtime, self_, arguments);
  }

 private:
  Value self_;
  Method method_;
};

template <std::size_t n>
bool is_one_of(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Members that change their object: the immutable sandbox gives an unsafe undefined for them.
bool is_mutating(Kind kind, std::string_view name) {
  static constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  if (kind == Kind::kList) return is_one_of(name, kList);
  return kind == Kind::kDict && is_one_of(name, kDict);
}

/// Members that Python has and this engine has not.
bool is_python_member(Kind kind, std::string_view name) {
  static constexpr std::string_view kString[] = {"casefold",    "encode",    "expandtabs",
                                                 "format_map",  "isascii",   "isidentifier",
                                                 "isprintable", "maketrans", "translate"};
  static constexpr std::string_view kInteger[] = {
      "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
      "from_bytes",       "imag",      "numerator",  "real",      "to_bytes"};
  static constexpr std::string_view kFloat[] = {
      "as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "is_integer", "real"};
  static constexpr std::string_view kRange[] = {"count", "index", "start", "step", "stop"};
  static constexpr std::string_view kIterator[] = {"close",      "gi_code",      "gi_frame",
                                                   "gi_running", "gi_suspended", "gi_yieldfrom",
                                                   "send",       "throw"};
  static constexpr std::string_view kView[] = {"isdisjoint", "mapping"};
  static constexpr std::string_view kMacro[] = {"arguments",     "caller",          "catch_kwargs",
                                                "catch_varargs", "explicit_caller", "name"};
  switch (kind) {
    case Kind::kString:
      return is_one_of(name, kString);
    case Kind::kInt:
    case Kind::kBool:
      return is_one_of(name, kInteger);
    case Kind::kFloat:
      return is_one_of(name, kFloat);
    case Kind::kRange:
      return is_one_of(name, kRange);
    case Kind::kIterator:
      return is_one_of(name, kIterator);
    case Kind::kDictView:
      return is_one_of(name, kView);
    case Kind::kCallable:
      return is_one_of(name, kMacro);
    case Kind::kDict:
      return name == "fromkeys";
    default:
      return false;
  }
}

/// Members that every Python object has; the sandbox hides them.
bool is_internal(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "__class__",   "__delattr__", "__dir__",           "__doc__",         "__eq__",
      "__format__",  "__ge__",      "__getattribute__",  "__getstate__",    "__gt__",
      "__hash__",    "__init__",    "__init_subclass__", "__le__",          "__lt__",
      "__ne__",      "__new__",     "__reduce__",        "__reduce_ex__",   "__repr__",
      "__setattr__", "__sizeof__",  "__str__",           "__subclasshook__"};
  return is_one_of(name, kNames);
}

std::string describe(const Value& object) {
  if (object.is_none()) return "None";
  return std::string(kind_name(object.kind())) + " object";
}

Value missing_attribute(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", describe(object), name));
}

Value unsafe_attribute(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe", name,
                                      kind_name(object.kind())));
}

/// A member of the object's type, not an item; false where there is none.
bool find_member(Runtime& runtime, const Value& object, const std::string& name, Value* out) {
  if (is_internal(name) || is_mutating(object.kind(), name)) {
    *out = unsafe_attribute(object, name);
    return true;
  }
  if (object.is(Kind::kLoop)) return find_loop_member(runtime, object, name, out);
  if (object.is(Kind::kNamespace)) {
    const Value* found = find_key(object.dict(), decode_utf8(name).value_or(U""));
    if (found != nullptr) *out = *found;
    return found != nullptr;
  }
  if (object.is(Kind::kTuple) && object.sequence().is_group) {
    if (name == "grouper" || name == "list") {
      *out = object.sequence().items[name == "grouper" ? 0 : 1];
      return true;
    }
  }
  if (const Method method = find_method(object.kind(), name); method != nullptr) {
    *out = bind_method(runtime, object, method);
    return true;
  }
  if (is_python_member(object.kind(), name)) {
    runtime.fail_unsupported("the member '{}' of a {}", name, kind_name(object.kind()));
  }
  return false;
}

bool find_item(Runtime& runtime, const Value& object, const Value& key, Value* out) {
  if (object.is(Kind::kDict)) {
    if (key.is(Kind::kList) || key.is(Kind::kDict)) return false;
    const Value* found = find_key(runtime, object.dict(), key);
    if (found != nullptr) *out = *found;
    return found != nullptr;
  }
  if (!key.is_integral()) return false;
  const bool indexed = object.is_string() || object.is(Kind::kList) || object.is(Kind::kTuple) ||
                       object.is(Kind::kRange);
  if (!indexed) {
    if (object.is(Kind::kLoop)) runtime.fail_unsupported("an index into the loop variable");
    return false;
  }
  const std::int64_t length = length_of(runtime, object);
  std::int64_t index = key.as_int();
  if (index < 0) index += length;
  if (index < 0 || index >= length) return false;
  const auto at = static_cast<std::size_t>(index);
  if (object.is_string()) {
    *out = Value::string(object.text().slice(at, at + 1)).as_markup(object.is_markup());
  } else if (object.is(Kind::kRange)) {
    *out = Value::integer(object.range().at(index), object.origin());
  } else {
    *out = object.sequence().items[at];
  }
  return true;
}

/// A slice bound: fallback for None, else counted from the end where negative, and clamped.
std::int64_t slice_bound(Runtime& runtime, const Value& bound, std::int64_t fallback,
                         std::int64_t length, bool backwards) {
  if (bound.is_none()) return fallback;
  if (!bound.is_integral()) {
    runtime.fail_argument("slice bounds must be integers or none, not {}", kind_name(bound.kind()));
  }
  std::int64_t value = bound.as_int();
  if (value < 0) value = value < -length ? -1 : value + length;
  if (bound.as_int() < 0 && value < 0) return backwards ? -1 : 0;
  return std::min(value, backwards ? length - 1 : length);
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& object, const std::string& name) {
  runtime.charge_work(1);
  if (object.is_undefined()) runtime.fail_undefined(object);
  Value out;
  if (find_member(runtime, object, name, &out)) return out;
  if (object.is(Kind::kDict)) {
    runtime.charge_work(object.dict().items.size() / 16);
    const Value* found = find_key(object.dict(), decode_utf8(name).value_or(U""));
    if (found != nullptr) return *found;
  }
  return missing_attribute(object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
  runtime.charge_work(1);
  if (object.is_undefined()) runtime.fail_undefined(object);
  Value out;
  if (find_item(runtime, object, key, &out)) return out;
  if (key.is_string()) {
    const std::string name = encode_utf8(key.chars());
    if (find_member(runtime, object, name, &out)) return out;
    return missing_attribute(object, name);
  }
  if (key.is_undefined() && object.is(Kind::kDict)) return missing_attribute(object, "Undefined");
  return Value::undefined(fmt::format("'{}' has no such element", describe(object)));
}

Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step) {
  if (object.is_undefined()) runtime.fail_undefined(object);
  const bool sliced = object.is_string() || object.is(Kind::kList) || object.is(Kind::kTuple) ||
                      object.is(Kind::kRange);
  if (!sliced) return Value::undefined(fmt::format("'{}' cannot be sliced", describe(object)));
  for (const Value* bound : {&start, &stop, &step}) {
    // jinja2 turns the TypeError of a bad bound into an undefined value.
    if (!bound->is_none() && !bound->is_integral()) {
      return Value::undefined(fmt::format("'{}' has no such slice", describe(object)));
    }
  }
  const std::int64_t stride = step.is_none() ? 1 : step.as_int();
  if (stride == 0) runtime.fail_argument("the step of a slice cannot be zero");
  const std::int64_t length = length_of(runtime, object);
  const bool backwards = stride < 0;
  const std::int64_t first =
      slice_bound(runtime, start, backwards ? length - 1 : 0, length, backwards);
  const std::int64_t last = slice_bound(runtime, stop, backwards ? -1 : length, length, backwards);
  if (object.is_string() && stride == 1) {
    const auto begin = static_cast<std::size_t>(first);
    const auto end = static_cast<std::size_t>(std::max(first, last));
    return runtime.make_string(object.text().slice(begin, end)).as_markup(object.is_markup());
  }
  std::vector<std::size_t> picked;
  for (std::int64_t i = first; backwards ? i > last : i < last;) {
    picked.push_back(static_cast<std::size_t>(i));
    if (__builtin_add_overflow(i, stride, &i)) break;
  }
  runtime.charge_work(picked.size());
  if (object.is_string()) {
    Text out;
    for (const std::size_t i : picked) out.append_range(object.text(), i, i + 1);
    return runtime.make_string(std::move(out)).as_markup(object.is_markup());
  }
  if (object.is(Kind::kRange)) return slice_range(runtime, object, first, last, stride);
  std::vector<Value> items;
  for (const std::size_t i : picked) items.push_back(object.sequence().items[i]);
  return runtime.make_sequence(object.kind(), std::move(items), object.origin());
}

Method find_method(Kind kind, std::string_view name) {
  if (kind == Kind::kString) return find_string_method(name);
  return find_container_method(kind, name);
}

Value bind_method(Runtime& runtime, const Value& self, Method method) {
  return Value::of(runtime.make<BoundMethod>(self, method));
}

}  // namespace memdecay::jinja
