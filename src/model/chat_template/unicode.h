// What Python's str methods know about code points: classes and case mappings.
//
// Full Unicode (the version that unicode_tables.inc names), independent of the C locale. Pure
// functions, any thread; O(log ranges) a code point.
#pragma once

#include <string>
#include <string_view>

namespace memdecay::jinja {

bool is_space(char32_t code);
bool is_alphabetic(char32_t code);
bool is_decimal(char32_t code);
bool is_digit(char32_t code);
bool is_numeric(char32_t code);
bool is_upper_case(char32_t code);
bool is_lower_case(char32_t code);
bool is_cased(char32_t code);
/// Whether Python's repr() shows the character as it is.
bool is_printable(char32_t code);

/// The upper, title case of one code point: one to three code points.
std::u32string to_upper(char32_t code);
std::u32string to_title(char32_t code);
/// The lower case of text[index]; the neighbours decide the form of a capital sigma.
std::u32string to_lower(std::u32string_view text, std::size_t index);

}  // namespace memdecay::jinja
