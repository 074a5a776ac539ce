#include "model/chat_template/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "model/chat_template/unicode.h"

namespace memdecay::jinja {
namespace {

[[noreturn]] void fail_overflow(Runtime& runtime) {
  runtime.fail_unsupported("an integer that does not fit 64 bits");
}

[[noreturn]] void fail_zero_division(Runtime& runtime) {
  runtime.fail_argument("division by zero");
}

std::int64_t floor_divide(Runtime& runtime, std::int64_t a, std::int64_t b) {
  if (b == 0) fail_zero_division(runtime);
  if (b == -1) {
    std::int64_t out = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, a, &out)) fail_overflow(runtime);
    return out;
  }
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t floor_modulo(Runtime& runtime, std::int64_t a, std::int64_t b) {
  if (b == 0) fail_zero_division(runtime);
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double float_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0.0) {
    if ((b < 0) != (rest < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

double float_floor_divide(double a, double b) {
  const double rest = float_modulo(a, b);
  const double quotient = (a - rest) / b;
  if (quotient == 0.0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1.0 : floored;
}

Value integer_power(Runtime& runtime, std::int64_t base, std::int64_t exponent, OriginId origin) {
  if (exponent < 0) {
    if (base == 0) fail_zero_division(runtime);
    return Value::floating(std::pow(static_cast<double>(base), static_cast<double>(exponent)),
                           origin);
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      fail_overflow(runtime);
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow(runtime);
  }
  return Value::integer(result, origin);
}

Value integer_arithmetic(Runtime& runtime, std::string_view op, std::int64_t a, std::int64_t b,
                         OriginId origin) {
  std::int64_t out = 0;
  if (op == "/") {
    if (b == 0) fail_zero_division(runtime);
    // Beyond 2^53 the exact quotient of long double rounds once more than Python's; the difference
    // is below one unit in the last place of a double.
    const long double quotient = static_cast<long double>(a) / static_cast<long double>(b);
    return Value::floating(static_cast<double>(quotient), origin);
  }
  if (op == "//") return Value::integer(floor_divide(runtime, a, b), origin);
  if (op == "%") return Value::integer(floor_modulo(runtime, a, b), origin);
  if (op == "**") return integer_power(runtime, a, b, origin);
  const bool overflow = op == "+"   ? __builtin_add_overflow(a, b, &out)
                        : op == "-" ? __builtin_sub_overflow(a, b, &out)
                                    : __builtin_mul_overflow(a, b, &out);
  if (overflow) fail_overflow(runtime);
  return Value::integer(out, origin);
}

Value float_power(Runtime& runtime, double a, double b, OriginId origin) {
  if (a == 0.0 && b < 0.0) fail_zero_division(runtime);
  if (a < 0.0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    runtime.fail_unsupported("a complex number");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    runtime.fail_argument("the result of ** is too large");
  }
  return Value::floating(result, origin);
}

/// The text without surrounding whitespace, digits of all scripts as ASCII, underscores between
/// digits gone; nothing where a character cannot be part of a number.
std::optional<std::string> plain_number(const Text& text) {
  std::u32string_view chars = text.chars();
  while (!chars.empty() && is_space(chars.front())) chars.remove_prefix(1);
  while (!chars.empty() && is_space(chars.back())) chars.remove_suffix(1);
  std::string out;
  for (std::size_t i = 0; i < chars.size(); ++i) {
    const char32_t c = chars[i];
    if (c >= 0x80) return std::nullopt;
    if (c == U'_') {
      const auto alnum = [&](std::size_t at) {
        return at < chars.size() && chars[at] < 0x80 &&
               (is_decimal(chars[at]) || is_alphabetic(chars[at]));
      };
      if (i == 0 || !alnum(i - 1) || !alnum(i + 1)) return std::nullopt;
      continue;
    }
    out.push_back(static_cast<char>(c));
  }
  return out;
}

}  // namespace

Value number_arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  const OriginId origin = runtime.mix(a.origin(), b.origin());
  if (a.is_integral() && b.is_integral()) {
    return integer_arithmetic(runtime, op, a.as_int(), b.as_int(), origin);
  }
  const double x = a.as_float();
  const double y = b.as_float();
  if (op == "+") return Value::floating(x + y, origin);
  if (op == "-") return Value::floating(x - y, origin);
  if (op == "*") return Value::floating(x * y, origin);
  if (op == "**") return float_power(runtime, x, y, origin);
  if (y == 0.0) fail_zero_division(runtime);
  if (op == "/") return Value::floating(x / y, origin);
  if (op == "//") return Value::floating(float_floor_divide(x, y), origin);
  return Value::floating(float_modulo(x, y), origin);
}

int order_mixed(const Value& a, const Value& b) {
  // x86 long double holds every int64 and every double exactly.
  static_assert(sizeof(long double) > sizeof(double));
  const auto exact = [](const Value& v) {
    return v.is_integral() ? static_cast<long double>(v.as_int())
                           : static_cast<long double>(v.as_float());
  };
  const long double x = exact(a);
  const long double y = exact(b);
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string scientific(buffer, end.ptr);
  const std::size_t mark = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + mark + 1);
  std::string digits;
  for (const char c : scientific.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  std::string out = std::signbit(value) ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) {
    return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string fraction = digits.substr(whole);
  return out + digits.substr(0, whole) + "." + (fraction.empty() ? "0" : fraction);
}

std::optional<Value> parse_int(Runtime& runtime, const Text& text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) {
    runtime.fail_argument("the base of int() must be 0 or 2 to 36");
  }
  std::optional<std::string> plain = plain_number(text);
  if (!plain || plain->empty()) return std::nullopt;
  const bool negative = plain->front() == '-';
  if (negative || plain->front() == '+') plain->erase(0, 1);
  const auto prefixed = [&plain](char mark) {
    return plain->size() > 2 && (*plain)[0] == '0' && ((*plain)[1] | 0x20) == mark;
  };
  for (const auto& [mark, marked] : {std::pair{'x', 16}, std::pair{'o', 8}, std::pair{'b', 2}}) {
    if (prefixed(mark) && (base == 0 || base == marked)) {
      plain->erase(0, 2);
      base = marked;
      break;
    }
  }
  if (base == 0) base = 10;
  if (plain->empty() || plain->front() == '-' || plain->front() == '+') return std::nullopt;
  if (negative) plain->insert(0, "-");
  std::int64_t value = 0;
  const char* end = plain->data() + plain->size();
  const auto parsed = std::from_chars(plain->data(), end, value, static_cast<int>(base));
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) fail_overflow(runtime);
  return Value::integer(value, text.origin_at(0));
}

std::optional<double> parse_float(const Text& text) {
  std::optional<std::string> plain = plain_number(text);
  if (!plain || plain->empty()) return std::nullopt;
  std::string lower = *plain;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  const std::string word = lower.substr(lower[0] == '-' || lower[0] == '+' ? 1 : 0);
  const double sign = lower[0] == '-' ? -1.0 : 1.0;
  if (word == "inf" || word == "infinity") return sign * HUGE_VAL;
  if (word == "nan") return std::nan("");
  if (word.find_first_not_of("0123456789.e+-") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(lower.c_str(), &end);
  if (end != lower.c_str() + lower.size()) return std::nullopt;
  return value;
}

std::int64_t truncate_float(Runtime& runtime, double value) {
  if (std::isnan(value)) runtime.fail_argument("cannot convert NaN to an integer");
  if (std::isinf(value)) runtime.fail_argument("cannot convert infinity to an integer");
  constexpr double kLimit = 9223372036854775808.0;
  if (value >= kLimit || value < -kLimit) fail_overflow(runtime);
  return static_cast<std::int64_t>(value);
}

double round_float(double value, int digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
  // Rounding before the point: in decimal digits, which are exact.
  std::string text = fmt::format("{:.{}f}", std::fabs(value), 0);
  const auto drop = static_cast<std::size_t>(-digits);
  const double scale = std::pow(10.0, static_cast<double>(drop));
  if (text.size() < drop) return std::copysign(0.0, value);
  const double scaled = std::fabs(value) / scale;
  const double floored = std::floor(scaled);
  const double rest = std::fabs(value) - floored * scale;
  double rounded = floored;
  if (rest * 2 > scale || (rest * 2 == scale && std::fmod(floored, 2.0) != 0.0)) rounded += 1.0;
  return std::copysign(rounded * scale, value);
}

}  // namespace memdecay::jinja
