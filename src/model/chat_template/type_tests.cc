// The tests behind `is`.
#include <algorithm>

#include "model/chat_template/attributes.h"
#include "model/chat_template/filters.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {
namespace {

struct TestEntry {
  std::string_view name;
  TypeTest test;
};

template <bool (*check)(const Value&)>
bool plain(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "this test", arguments, {});
  return check(input);
}

bool is_defined(const Value& v) {
  return !v.is_undefined();
}
bool is_undefined(const Value& v) {
  return v.is_undefined();
}
bool is_none(const Value& v) {
  return v.is_none();
}
bool is_boolean(const Value& v) {
  return v.is(Kind::kBool);
}
bool is_false(const Value& v) {
  return v.is(Kind::kBool) && !v.as_bool();
}
bool is_true(const Value& v) {
  return v.is(Kind::kBool) && v.as_bool();
}
bool is_integer(const Value& v) {
  return v.is(Kind::kInt);
}
bool is_float(const Value& v) {
  return v.is(Kind::kFloat);
}
bool is_number(const Value& v) {
  return v.is_number();
}
bool is_string(const Value& v) {
  return v.is_string();
}
bool is_mapping(const Value& v) {
  return v.is(Kind::kDict);
}
bool is_escaped(const Value& v) {
  return v.is_markup();
}

bool is_sequence(const Value& v) {
  return v.is_string() || v.is(Kind::kList) || v.is(Kind::kTuple) || v.is(Kind::kDict) ||
         v.is(Kind::kRange) || v.is_undefined();
}

bool is_iterable(const Value& v) {
  return is_sequence(v) || v.is_sequence_object() || v.is(Kind::kLoop);
}

bool is_callable(const Value& v) {
  return v.is(Kind::kCallable) || v.is_undefined() || v.is(Kind::kLoop);
}

template <bool odd>
bool is_parity(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "odd and even", arguments, {});
  const Value rest = arithmetic(runtime, "%", input, Value::integer(2));
  return equals(runtime, rest, Value::integer(odd ? 1 : 0));
}

bool divisible_by(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "divisibleby", arguments, {"num"}, 1);
  return equals(runtime, arithmetic(runtime, "%", input, parameters[0]), Value::integer(0));
}

template <bool upper>
bool has_case(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "upper and lower", arguments, {});
  const Value text = Value::string(to_text(runtime, input));
  return find_string_method(upper ? "isupper" : "islower")(runtime, text, arguments).as_bool();
}

bool same_as(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "sameas", arguments, {"other"}, 1);
  const Value& other = parameters[0];
  if (input.kind() != other.kind()) return false;
  if (input.is_none()) return true;
  if (input.is(Kind::kBool)) return input.as_bool() == other.as_bool();
  if (input.object() != nullptr) return input.object() == other.object();
  runtime.fail_unsupported("the test 'sameas' between {} values", kind_name(input.kind()));
}

template <char op0, char op1>
bool compares(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "this comparison", arguments, {"other"}, 1);
  static constexpr char kOperator[] = {op0, op1};
  return compare(runtime, std::string_view(kOperator, op1 == 0 ? 1 : 2), input, parameters[0]);
}

bool is_in(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "in", arguments, {"seq"}, 1);
  return contains(runtime, parameters[0], input);
}

bool is_filter(Runtime&, const Value& input, const CallArguments&) {
  if (!input.is_string()) return false;
  const std::string name = encode_utf8(input.chars());
  for (const auto find :
       {find_text_filter, find_sequence_filter, find_select_filter, find_number_filter}) {
    if (find(name) != nullptr) return true;
  }
  return false;
}

constexpr TestEntry kTests[] = {
    {"!=", compares<'!', '='>},
    {"<", compares<'<', 0>},
    {"<=", compares<'<', '='>},
    {"==", compares<'=', '='>},
    {">", compares<'>', 0>},
    {">=", compares<'>', '='>},
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", compares<'=', '='>},
    {"equalto", compares<'=', '='>},
    {"escaped", plain<is_escaped>},
    {"even", is_parity<false>},
    {"false", plain<is_false>},
    {"filter", is_filter},
    {"float", plain<is_float>},
    {"ge", compares<'>', '='>},
    {"greaterthan", compares<'>', 0>},
    {"gt", compares<'>', 0>},
    {"in", is_in},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compares<'<', '='>},
    {"lessthan", compares<'<', 0>},
    {"lower", has_case<false>},
    {"lt", compares<'<', 0>},
    {"mapping", plain<is_mapping>},
    {"ne", compares<'!', '='>},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", is_parity<true>},
    {"sameas", same_as},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", has_case<true>},
};

}  // namespace

TypeTest find_test(Runtime& runtime, std::string_view name) {
  runtime.charge_work(1);
  for (const TestEntry& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  if (name == "test") runtime.fail_unsupported("the test 'test'");
  runtime.fail_argument("there is no test named '{}'", name);
}

}  // namespace memdecay::jinja
