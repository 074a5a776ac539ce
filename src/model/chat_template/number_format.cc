#include "model/chat_template/number_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/chat_template/numbers.h"

namespace memdecay::jinja {
namespace {

std::string integer_digits(std::uint64_t magnitude, char type, bool alternate) {
  const auto prefixed = [alternate](std::string_view prefix, std::string_view digits) {
    return fmt::format("{}{}", alternate ? prefix : std::string_view(), digits);
  };
  switch (type) {
    case 'x':
      return prefixed("0x", fmt::format("{:x}", magnitude));
    case 'X':
      return prefixed("0X", fmt::format("{:X}", magnitude));
    case 'o':
      return prefixed("0o", fmt::format("{:o}", magnitude));
    case 'b':
      return prefixed("0b", fmt::format("{:b}", magnitude));
    default:
      return fmt::format("{}", magnitude);
  }
}

std::string float_digits(double magnitude, const NumberStyle& style) {
  if (style.type == 0 && style.precision < 0) return float_repr(magnitude);
  const int precision = style.precision < 0 ? 6 : style.precision;
  std::string spec = "%";
  if (style.alternate) spec += "#";
  spec += ".*";
  spec += style.type == '%' ? 'f' : style.type;
  const double scaled = style.type == '%' ? magnitude * 100.0 : magnitude;
  char buffer[512];
  const int size = std::snprintf(buffer, sizeof buffer, spec.c_str(), precision, scaled);
  std::string out(buffer, static_cast<std::size_t>(std::clamp(size, 0, 511)));
  return style.type == '%' ? out + "%" : out;
}

void group_thousands(std::string* digits) {
  std::size_t end = digits->find_first_not_of("0123456789");
  if (end == std::string::npos) end = digits->size();
  while (end > 3) {
    end -= 3;
    digits->insert(end, 1, ',');
  }
}

}  // namespace

std::string format_number(Runtime& runtime, const Value& number, const NumberStyle& style) {
  static constexpr std::string_view kIntegerTypes = "dxXob";
  const bool as_integer = style.type == 0
                              ? number.is_integral()
                              : kIntegerTypes.find(style.type) != std::string_view::npos;
  // 128 digits after the point are more than any template prints, and fit the buffer.
  if (style.precision > 128) runtime.fail_unsupported("a precision above 128");
  bool negative = false;
  std::string digits;
  if (as_integer) {
    const std::int64_t value = number.as_int();
    negative = value < 0;
    const auto bits = static_cast<std::uint64_t>(value);
    digits = integer_digits(negative ? 0 - bits : bits, style.type, style.alternate);
  } else {
    if (style.type == 0 && style.precision >= 0) {
      runtime.fail_unsupported("a format with a precision and no type");
    }
    const double value = number.as_float();
    negative = std::signbit(value) && !std::isnan(value);
    digits = float_digits(std::fabs(value), style);
  }
  if (style.grouped) group_thousands(&digits);
  if (!negative && style.sign == '-') return digits;
  return fmt::format("{}{}", negative ? '-' : style.sign, digits);
}

std::string pad_with_zeros(std::string digits, std::size_t width) {
  if (digits.size() >= width) return digits;
  const bool is_signed =
      !digits.empty() && (digits[0] == '-' || digits[0] == '+' || digits[0] == ' ');
  std::size_t at = is_signed ? 1 : 0;
  if (digits.size() >= at + 2 && digits[at] == '0' &&
      std::string_view("xXob").find(digits[at + 1]) != std::string_view::npos) {
    at += 2;
  }
  digits.insert(at, width - digits.size(), '0');
  return digits;
}

}  // namespace memdecay::jinja
