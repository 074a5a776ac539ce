#include "model/chat_template/string_literal.h"

#include <fmt/core.h>

#include "model/chat_template/template_failure.h"
#include "model/chat_template/text.h"

namespace memdecay::jinja {
namespace {

int hex_value(char32_t c) {
  if (c >= U'0' && c <= U'9') return static_cast<int>(c - U'0');
  if (c >= U'a' && c <= U'f') return static_cast<int>(c - U'a') + 10;
  if (c >= U'A' && c <= U'F') return static_cast<int>(c - U'A') + 10;
  return -1;
}

char32_t simple_escape(char32_t c) {
  switch (c) {
    case U'\\':
    case U'\'':
    case U'"':
      return c;
    case U'a':
      return U'\a';
    case U'b':
      return U'\b';
    case U'f':
      return U'\f';
    case U'n':
      return U'\n';
    case U'r':
      return U'\r';
    case U't':
      return U'\t';
    case U'v':
      return U'\v';
    default:
      return 0;
  }
}

class Unescaper {
 public:
  Unescaper(std::u32string_view inside, int line) : inside_(inside), line_(line) {}

  std::u32string run() {
    while (at_ < inside_.size()) {
      const char32_t c = inside_[at_++];
      if (c != U'\\' || at_ >= inside_.size()) {
        out_.push_back(c);
      } else {
        escape(inside_[at_]);
      }
    }
    return std::move(out_);
  }

 private:
  void escape(char32_t c) {
    if (const char32_t simple = simple_escape(c); simple != 0) {
      ++at_;
      out_.push_back(simple);
    } else if (c == U'\n') {
      ++at_;
    } else if (c >= U'0' && c <= U'7') {
      octal();
    } else if (c == U'x' || c == U'u' || c == U'U') {
      ++at_;
      hex(c == U'x' ? 2 : c == U'u' ? 4 : 8);
    } else if (c == U'N') {
      throw TemplateFailure{StatusCode::kUnsupported, "the escape \\N{...} in a string", line_};
    } else if (c >= 0x80) {
      // jinja2 rewrites such a character as its own escape first, so the backslash keeps it apart.
      ++at_;
      const auto code = static_cast<std::uint32_t>(c);
      out_ += widen(c < 0x100     ? fmt::format("\\x{:02x}", code)
                    : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                                  : fmt::format("\\U{:08x}", code));
    } else {
      out_.push_back(U'\\');
    }
  }

  void octal() {
    char32_t code = 0;
    for (int i = 0; i < 3 && at_ < inside_.size(); ++i, ++at_) {
      if (inside_[at_] < U'0' || inside_[at_] > U'7') break;
      code = code * 8 + (inside_[at_] - U'0');
    }
    out_.push_back(code);
  }

  void hex(int digits) {
    char32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const int digit = at_ < inside_.size() ? hex_value(inside_[at_]) : -1;
      if (digit < 0) {
        throw TemplateFailure{StatusCode::kInvalidArgument, "a string has a truncated escape",
                              line_};
      }
      code = code * 16 + static_cast<char32_t>(digit);
    }
    if (code > 0x10FFFF) {
      throw TemplateFailure{StatusCode::kInvalidArgument, "a string has an illegal escape", line_};
    }
    if (code >= 0xD800 && code < 0xE000) {
      throw TemplateFailure{StatusCode::kUnsupported, "a lone surrogate in a string", line_};
    }
    out_.push_back(code);
  }

  std::u32string_view inside_;
  int line_;
  std::size_t at_ = 0;
  std::u32string out_;
};

}  // namespace

std::u32string unescape_string(std::u32string_view inside, int line) {
  return Unescaper(inside, line).run();
}

}  // namespace memdecay::jinja
