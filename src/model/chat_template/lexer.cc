#include "model/chat_template/lexer.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "model/chat_template/string_literal.h"
#include "model/chat_template/template_failure.h"
#include "model/chat_template/text.h"
#include "model/chat_template/unicode.h"

namespace memdecay::jinja {
namespace {

bool is_ascii_digit(char32_t c) {
  return c >= U'0' && c <= U'9';
}
bool is_name_start(char32_t c) {
  return c == U'_' || is_alphabetic(c);
}
bool is_name_part(char32_t c) {
  return is_name_start(c) || is_numeric(c);
}

/// Value of a digit in bases up to 16, 99 for anything else.
int digit_value(char32_t c) {
  if (is_ascii_digit(c)) return static_cast<int>(c - U'0');
  if (c >= U'a' && c <= U'f') return static_cast<int>(c - U'a') + 10;
  if (c >= U'A' && c <= U'F') return static_cast<int>(c - U'A') + 10;
  return 99;
}

/// One line ending everywhere, and none at the very end.
std::u32string normalize_source(std::u32string_view source) {
  std::u32string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != U'\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back(U'\n');
    if (i + 1 < source.size() && source[i + 1] == U'\n') ++i;
  }
  if (!out.empty() && out.back() == U'\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::u32string_view source) : source_(normalize_source(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_root();
    emit(TokenType::kEnd);
    return std::move(tokens_);
  }

 private:
  /// How a tag begins: what follows its brace and sign.
  struct TagStart {
    char32_t kind;  ///< '%', '{', '#', or 'r' for a whole {% raw %} tag
    char32_t sign;  ///< '-', '+' or 0
    std::size_t end;
  };

  [[noreturn]] void fail(const std::string& message) const {
    throw TemplateFailure{StatusCode::kInvalidArgument, message, line_};
  }
  char32_t peek(std::size_t offset = 0) const {
    return at_ + offset < source_.size() ? source_[at_ + offset] : U'\0';
  }
  bool starts_with(std::size_t at, std::u32string_view prefix) const {
    return std::u32string_view(source_).substr(at, prefix.size()) == prefix;
  }
  std::size_t skip_space(std::size_t at) const {
    while (at < source_.size() && is_space(source_[at])) ++at;
    return at;
  }
  Token& emit(TokenType type) {
    tokens_.emplace_back();
    tokens_.back().type = type;
    tokens_.back().line = line_;
    return tokens_.back();
  }
  /// Moves to `end`, counting lines and noting whether what was passed ends a line.
  void advance(std::size_t end) {
    for (std::size_t i = at_; i < end; ++i) {
      if (source_[i] == U'\n') ++line_;
    }
    if (end > at_) line_starting_ = source_[end - 1] == U'\n';
    at_ = end;
  }

  bool match_raw(std::size_t at, TagStart* start) const {
    std::size_t i = at + 2;
    char32_t sign = 0;
    if (i < source_.size() && (source_[i] == U'-' || source_[i] == U'+')) sign = source_[i++];
    i = skip_space(i);
    if (!starts_with(i, U"raw")) return false;
    i = skip_space(i + 3);
    if (starts_with(i, U"-%}")) {
      *start = {U'r', sign, skip_space(i + 3)};
      return true;
    }
    if (!starts_with(i, U"%}")) return false;
    *start = {U'r', sign, i + 2};
    return true;
  }

  bool find_tag(std::size_t from, std::size_t* at, TagStart* start) const {
    for (std::size_t i = from; i + 1 < source_.size(); ++i) {
      if (source_[i] != U'{') continue;
      const char32_t kind = source_[i + 1];
      if (kind != U'%' && kind != U'{' && kind != U'#') continue;
      *at = i;
      if (kind == U'%' && match_raw(i, start)) return true;
      std::size_t end = i + 2;
      char32_t sign = 0;
      if (end < source_.size() && (source_[end] == U'-' || source_[end] == U'+')) {
        sign = source_[end++];
      }
      *start = {kind, sign, end};
      return true;
    }
    return false;
  }

  /// The end of the data before a tag, after whitespace control.
  std::size_t strip_data(std::size_t begin, std::size_t end, char32_t sign, bool may_lstrip) const {
    if (sign == U'-') {
      while (end > begin && is_space(source_[end - 1])) --end;
      return end;
    }
    if (sign == U'+' || !may_lstrip) return end;
    std::size_t line = end;
    while (line > begin && source_[line - 1] != U'\n') --line;
    if (line == begin && !line_starting_) return end;
    for (std::size_t i = line; i < end; ++i) {
      if (!is_space(source_[i])) return end;
    }
    return line;
  }

  void emit_data(std::size_t begin, std::size_t end) {
    if (begin < end) emit(TokenType::kData).chars = source_.substr(begin, end - begin);
  }

  void lex_root() {
    std::size_t tag = 0;
    TagStart start{};
    if (!find_tag(at_, &tag, &start)) {
      emit_data(at_, source_.size());
      advance(source_.size());
      return;
    }
    emit_data(at_, strip_data(at_, tag, start.sign, start.kind != U'{'));
    advance(start.end);
    if (start.kind == U'#') return lex_comment();
    if (start.kind == U'r') return lex_raw();
    const bool variable = start.kind == U'{';
    emit(variable ? TokenType::kVariableBegin : TokenType::kBlockBegin);
    lex_expression(variable);
  }

  void lex_comment() {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i) {
      if (starts_with(i, U"+#}")) return advance(i + 3);
      if (starts_with(i, U"-#}")) return advance(skip_space(i + 3));
      if (starts_with(i, U"#}")) return advance(i + (starts_with(i + 2, U"\n") ? 3U : 2U));
    }
    fail("a comment has no end");
  }

  /// The end of an {% endraw %} tag at `at`, 0 if there is none; `sign` gets its left sign.
  std::size_t match_endraw(std::size_t at, char32_t* sign) const {
    std::size_t i = at + 2;
    *sign = 0;
    if (i < source_.size() && (source_[i] == U'-' || source_[i] == U'+')) *sign = source_[i++];
    i = skip_space(i);
    if (!starts_with(i, U"endraw")) return 0;
    return match_block_end(skip_space(i + 6));
  }

  /// The end of a `%}` with its sign and what it trims, 0 if there is none at `at`.
  std::size_t match_block_end(std::size_t at) const {
    if (starts_with(at, U"+%}")) return at + 3;
    if (starts_with(at, U"-%}")) return skip_space(at + 3);
    if (!starts_with(at, U"%}")) return 0;
    return at + (starts_with(at + 2, U"\n") ? 3U : 2U);
  }

  void lex_raw() {
    for (std::size_t i = at_; i + 1 < source_.size(); ++i) {
      if (!starts_with(i, U"{%")) continue;
      char32_t sign = 0;
      const std::size_t end = match_endraw(i, &sign);
      if (end == 0) continue;
      emit_data(at_, strip_data(at_, i, sign, true));
      return advance(end);
    }
    fail("a raw block has no end");
  }

  std::size_t match_variable_end(std::size_t at) const {
    if (starts_with(at, U"-}}")) return skip_space(at + 3);
    return starts_with(at, U"}}") ? at + 2 : 0;
  }

  void lex_expression(bool variable) {
    std::vector<char32_t> open;
    while (at_ < source_.size()) {
      if (open.empty()) {
        const std::size_t end = variable ? match_variable_end(at_) : match_block_end(at_);
        if (end != 0) {
          emit(variable ? TokenType::kVariableEnd : TokenType::kBlockEnd);
          return advance(end);
        }
      }
      lex_token(&open);
    }
  }

  void lex_token(std::vector<char32_t>* open) {
    const char32_t c = peek();
    if (is_space(c)) return advance(skip_space(at_));
    if (is_ascii_digit(c)) return lex_number();
    if (is_name_part(c)) return lex_name();
    if (c == U'\'' || c == U'"') return lex_string(c);
    lex_operator(open);
  }

  /// Digits with single underscores between them; the end, or `at` where there are none.
  std::size_t scan_digits(std::size_t at, int base) const {
    std::size_t i = at;
    while (i < source_.size()) {
      const std::size_t digit = i > at && source_[i] == U'_' ? i + 1 : i;
      if (digit >= source_.size() || digit_value(source_[digit]) >= base) break;
      i = digit + 1;
    }
    return i;
  }

  std::string ascii(std::size_t begin, std::size_t end) const {
    std::string out;
    for (std::size_t i = begin; i < end; ++i) {
      if (source_[i] != U'_') out.push_back(static_cast<char>(source_[i]));
    }
    return out;
  }

  /// The end of a float literal at at_, 0 if there is none.
  std::size_t scan_float() const {
    if (at_ > 0 && source_[at_ - 1] == U'.') return 0;
    std::size_t i = scan_digits(at_, 10);
    bool is_float = false;
    if (starts_with(i, U".")) {
      const std::size_t fraction = scan_digits(i + 1, 10);
      if (fraction > i + 1) {
        is_float = true;
        i = fraction;
      }
    }
    if (starts_with(i, U"e") || starts_with(i, U"E")) {
      std::size_t digits = i + 1;
      if (starts_with(digits, U"+") || starts_with(digits, U"-")) ++digits;
      const std::size_t exponent = scan_digits(digits, 10);
      if (exponent > digits) return exponent;
    }
    return is_float ? i : 0;
  }

  void lex_number() {
    if (const std::size_t end = scan_float(); end != 0) {
      const std::string digits = ascii(at_, end);
      Token& token = emit(TokenType::kFloat);
      token.floating = std::strtod(digits.c_str(), nullptr);
      return advance(end);
    }
    int base = 10;
    std::size_t begin = at_;
    std::size_t end = scan_digits(at_, 10);
    if (peek() == U'0') {
      const char32_t mark = peek(1) | 0x20U;
      const int marked = mark == U'b' ? 2 : mark == U'o' ? 8 : mark == U'x' ? 16 : 0;
      std::size_t digits = at_ + 2;
      if (marked != 0 && starts_with(digits, U"_")) ++digits;
      if (marked != 0 && scan_digits(digits, marked) > digits) {
        base = marked;
        begin = digits;
        end = scan_digits(digits, marked);
      } else {
        end = scan_digits(at_, 1);  // 012 is a zero and then a twelve
      }
    }
    const std::string digits = ascii(begin, end);
    Token& token = emit(TokenType::kInteger);
    const auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
    if (parsed.ec != std::errc()) {
      throw TemplateFailure{StatusCode::kUnsupported,
                            fmt::format("the number {} does not fit 64 bits", digits), line_};
    }
    advance(end);
  }

  void lex_name() {
    std::size_t end = at_;
    while (end < source_.size() && is_name_part(source_[end])) ++end;
    if (!is_name_start(peek())) fail("a name starts with a digit");
    emit(TokenType::kName).name = encode_utf8(std::u32string_view(source_).substr(at_, end - at_));
    advance(end);
  }

  void lex_string(char32_t quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == U'\\' ? 2U : 1U;
    if (end >= source_.size()) fail("a string has no closing quote");
    std::u32string value =
        unescape_string(std::u32string_view(source_).substr(at_ + 1, end - at_ - 1), line_);
    emit(TokenType::kString).chars = std::move(value);
    advance(end + 1);
  }

  void lex_operator(std::vector<char32_t>* open) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!starts_with(at_, widen(op))) continue;
      balance(op[0], open);
      emit(TokenType::kOperator).name = op;
      return advance(at_ + op.size());
    }
    fail(fmt::format("unexpected character '{}'", encode_utf8(source_.substr(at_, 1))));
  }

  void balance(char op, std::vector<char32_t>* open) const {
    if (op == '(') open->push_back(U')');
    if (op == '[') open->push_back(U']');
    if (op == '{') open->push_back(U'}');
    if (op != ')' && op != ']' && op != '}') return;
    if (open->empty()) fail(fmt::format("unexpected '{}'", op));
    const char32_t expected = open->back();
    open->pop_back();
    if (expected != static_cast<char32_t>(op)) {
      fail(fmt::format("unexpected '{}', expected '{}'", op, static_cast<char>(expected)));
    }
  }

  std::u32string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::u32string_view source) {
  return Lexer(source).run();
}

}  // namespace memdecay::jinja
