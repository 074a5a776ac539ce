// UTF-8 as the tokenizer needs it: where characters end and which bytes are not part of one.
//
// Well-formed means Unicode table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
// Pure functions, any thread, linear.
#pragma once

#include <cstddef>
#include <string_view>

namespace memdecay {

/// Bytes of the well-formed character that starts `text`; 0 where none does (or text is empty).
std::size_t utf8_char_length(std::string_view text);

/// Bytes of the longest well-formed start of `text`.
std::size_t utf8_valid_prefix(std::string_view text);

/// The ill-formed start of a text that utf8_char_length calls 0.
struct Utf8Subpart {
  std::size_t length = 0;   ///< the "maximal subpart" that one U+FFFD stands for, >= 1
  bool unfinished = false;  ///< the text ended there: more bytes could still make it a character
};
/// REQUIRES: !text.empty() and utf8_char_length(text) == 0.
Utf8Subpart utf8_subpart(std::string_view text);

}  // namespace memdecay
