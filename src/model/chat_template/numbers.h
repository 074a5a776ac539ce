// Python's numbers: arithmetic, order, text. Integers are 64-bit: what does not fit is a
// kUnsupported instead of a wrong digit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

/// REQUIRES: both are numbers. `op` is one of + - * / // % **.
Value number_arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b);

/// Exact order of an integer and a float, or two floats: -1, 0, 1, or 2 where one is NaN.
int order_mixed(const Value& a, const Value& b);

/// repr(float): the shortest digits that read back the same.
std::string float_repr(double value);

/// int(text, base) and float(text); nothing where Python raises ValueError.
std::optional<Value> parse_int(Runtime& runtime, const Text& text, std::int64_t base);
std::optional<double> parse_float(const Text& text);

/// int(value) of a float; throws for infinities, NaN and what does not fit.
std::int64_t truncate_float(Runtime& runtime, double value);

/// round(value, digits) as Python does it: to the nearest, ties by the exact binary value.
double round_float(double value, int digits);

}  // namespace memdecay::jinja
