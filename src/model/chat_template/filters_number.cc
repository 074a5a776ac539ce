#include <cmath>

#include "model/chat_template/filters.h"
#include "model/chat_template/numbers.h"
#include "model/chat_template/operators.h"
#include "model/chat_template/parameters.h"

namespace memdecay::jinja {
namespace {

Value absolute(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "abs", arguments, {});
  if (input.is(Kind::kFloat)) return Value::floating(std::fabs(input.as_float()), input.origin());
  if (input.is_integral()) return negate(runtime, input, input.as_int() < 0);
  if (input.is_undefined()) runtime.fail_undefined(input);
  runtime.fail_argument("abs needs a number, not a {}", kind_name(input.kind()));
}

Value to_int(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "int", arguments, {"default", "base"});
  if (input.is_undefined()) runtime.fail_undefined(input);
  const Value fallback = parameters.given(0) ? parameters[0] : Value::integer(0);
  if (input.is_integral()) return Value::integer(input.as_int(), input.origin());
  if (input.is_string()) {
    const auto parsed = parse_int(runtime, input.text(), parameters.integer(1, 10));
    if (parsed) return *parsed;
    const std::optional<double> number = parse_float(input.text());
    if (!number || !std::isfinite(*number)) return fallback;
    return Value::integer(truncate_float(runtime, *number), input.origin());
  }
  if (!input.is(Kind::kFloat) || std::isnan(input.as_float())) return fallback;
  if (std::isinf(input.as_float())) runtime.fail_argument("infinity is no integer");
  return Value::integer(truncate_float(runtime, input.as_float()), input.origin());
}

Value to_float(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "float", arguments, {"default"});
  if (input.is_undefined()) runtime.fail_undefined(input);
  if (input.is_number()) return Value::floating(input.as_float(), input.origin());
  if (input.is_string()) {
    const std::optional<double> number = parse_float(input.text());
    if (number) return Value::floating(*number, input.origin());
  }
  return parameters.given(0) ? parameters[0] : Value::floating(0.0);
}

Value round(Runtime& runtime, const Value& input, const CallArguments& arguments) {
  const Parameters parameters(runtime, "round", arguments, {"precision", "method"});
  if (input.is_undefined()) runtime.fail_undefined(input);
  if (!input.is_number()) {
    runtime.fail_argument("round needs a number, not a {}", kind_name(input.kind()));
  }
  const std::int64_t precision = parameters.integer(0, 0);
  const std::u32string method = parameters.given(1) ? parameters.text(1).chars() : U"common";
  if (precision < -400 || precision > 400) runtime.fail_unsupported("a precision beyond 400");
  if (method == U"common") {
    if (input.is_integral()) {
      if (precision < 0) runtime.fail_unsupported("rounding an integer to tens");
      return Value::integer(input.as_int(), input.origin());
    }
    return Value::floating(round_float(input.as_float(), static_cast<int>(precision)),
                           input.origin());
  }
  if (method != U"ceil" && method != U"floor") {
    runtime.fail_argument("the method of round must be common, ceil or floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = input.as_float() * scale;
  const double rounded = method == U"ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value::floating(rounded / scale, input.origin());
}

}  // namespace

Filter find_number_filter(std::string_view name) {
  if (name == "abs") return absolute;
  if (name == "int") return to_int;
  if (name == "float") return to_float;
  if (name == "round") return round;
  return nullptr;
}

}  // namespace memdecay::jinja
