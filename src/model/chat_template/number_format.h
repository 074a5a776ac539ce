// One number, formatted as a format spec or a % conversion asks: sign, padding, precision, base.
#pragma once

#include <string>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

struct NumberStyle {
  char type = 0;    ///< d x X o b e E f F g G %, or 0
  char sign = '-';  ///< '-', '+' or ' '
  bool alternate = false;
  bool grouped = false;  ///< commas between thousands
  int precision = -1;
};

/// The digits without padding; the sign comes first. Throws for types that the number has not.
std::string format_number(Runtime& runtime, const Value& number, const NumberStyle& style);

/// `digits` with zeros between its sign and the rest, to `width`.
std::string pad_with_zeros(std::string digits, std::size_t width);

}  // namespace memdecay::jinja
