// Lexer: template source to tokens, with Jinja's whitespace control.
//
// trim_blocks and lstrip_blocks are on, keep_trailing_newline is off, as transformers sets them.
// Throws TemplateFailure. O(source).
#pragma once

#include <string>
#include <vector>

#include "model/chat_template/token.h"

namespace memdecay::jinja {

/// The tokens of `source`, the last one of type kEnd.
std::vector<Token> tokenize(std::u32string_view source);

}  // namespace memdecay::jinja
