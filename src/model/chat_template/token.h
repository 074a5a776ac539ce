// Token: what the lexer cuts a template into.
#pragma once

#include <cstdint>
#include <string>

namespace memdecay::jinja {

enum class TokenType : std::uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::u32string chars;      ///< data and strings, unescaped
  std::string name;          ///< names and operators
  std::int64_t integer = 0;  ///< kInteger
  double floating = 0;       ///< kFloat
};

}  // namespace memdecay::jinja
