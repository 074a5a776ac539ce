// What the backslashes of a string literal mean: Python's unicode-escape.
#pragma once

#include <string>
#include <string_view>

namespace memdecay::jinja {

/// The value of a literal's inside. Throws TemplateFailure at `line`.
std::u32string unescape_string(std::u32string_view inside, int line);

}  // namespace memdecay::jinja
