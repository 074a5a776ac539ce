#include "policy/regions/exact_values.h"

#include <algorithm>
#include <optional>

#include "core/ascii.h"
#include "core/check.h"

namespace memdecay {
namespace {

constexpr std::size_t kLongestQuoted = 256;  // longer is prose between two stray quotes
constexpr std::size_t kShortestHash = 7;     // what version control abbreviates to

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_joint(char c) {
  return std::string_view("_./\\-:@#+%$~=?&").find(c) != std::string_view::npos;
}

struct WordShape {
  int digits = 0;
  int lower = 0;
  int upper = 0;
  int slashes = 0;
  bool underscore = false;
  bool at = false;
  bool hump = false;  // aB
  bool hex = true;    // nothing but hex digits and dashes
};

WordShape shape_of(std::string_view word) {
  WordShape shape;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    shape.digits += is_digit(c);
    shape.lower += is_lower(c);
    shape.upper += is_upper(c);
    shape.slashes += c == '/' || c == '\\';
    shape.underscore |= c == '_' && word.size() > 1;
    shape.at |= c == '@' && i > 0 && i + 1 < word.size();
    shape.hump |= i > 0 && is_upper(c) && is_lower(word[i - 1]);
    shape.hex &= is_hex(c) || c == '-';
  }
  return shape;
}

bool is_file_name(std::string_view word) {
  const std::size_t dot = word.rfind('.');
  if (dot == std::string_view::npos || dot < 2 || word.size() - dot - 1 > 5) return false;
  const std::string_view extension = word.substr(dot + 1);
  return extension.size() >= 1 && is_alnum(word[dot - 1]) &&
         std::all_of(extension.begin(), extension.end(), is_alnum);
}

bool is_path(std::string_view word, const WordShape& shape) {
  if (shape.slashes == 0 || shape.digits + shape.lower + shape.upper == 0) return false;
  if (word.find("://") != std::string_view::npos) return true;
  const bool rooted = word[0] == '/' || word[0] == '\\' || word.starts_with("./") ||
                      word.starts_with("../") || word.starts_with("~/");
  return rooted || shape.slashes >= 2 || is_file_name(word) || shape.underscore;
}

std::optional<ExactKind> classify(std::string_view word) {
  const WordShape shape = shape_of(word);
  const int letters = shape.lower + shape.upper;
  if (shape.digits > 0 && letters == 0) return ExactKind::kNumber;
  if (word.size() >= kShortestHash && shape.hex && shape.digits > 0) return ExactKind::kHash;
  if (is_path(word, shape)) return ExactKind::kPath;
  if (shape.digits > 0 || shape.at || shape.hump) return ExactKind::kIdentifier;
  if (shape.underscore && letters > 0) return ExactKind::kIdentifier;
  // Codes of three letters, such as those of airports and currencies.
  if (word.size() == 3 && shape.upper == 3) return ExactKind::kIdentifier;
  if (is_file_name(word)) return ExactKind::kIdentifier;
  return std::nullopt;
}

class ExactScanner {
 public:
  explicit ExactScanner(std::string_view text) : text_(text) {}

  std::vector<ExactValue> scan() {
    while (at_ < text_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (is_space(c)) {
      ++at_;
    } else if (c == ':' && after_quote_) {
      after_colon_ = true;  // "key": what follows is a JSON leaf
      after_quote_ = false;
      ++at_;
    } else if ((c == '"' || c == '`' || (c == '\'' && !follows_word())) && take_quoted(c)) {
    } else if (is_alnum(c) || starts_word(c)) {
      take_word();
    } else {
      after_colon_ = after_quote_ = false;
      ++at_;
    }
  }

  bool follows_word() const { return at_ > 0 && is_alnum(text_[at_ - 1]); }

  bool starts_word(char c) const {
    if (at_ + 1 >= text_.size()) return false;
    const char next = text_[at_ + 1];
    if (c == '/' || c == '\\' || c == '~' || c == '.') {
      return is_alnum(next) || next == '/' || next == '.' || next == '_';
    }
    if (c == '-' || c == '+' || c == '$' || c == '#') return is_digit(next);
    return c == '_' && (is_alnum(next) || next == '_');
  }

  bool take_quoted(char quote) {
    const std::size_t last = std::min(text_.size(), at_ + kLongestQuoted);
    std::size_t end = at_ + 1;
    while (end < last && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2U : 1U;
    }
    if (end >= last || text_[end] != quote) return false;
    ++end;
    std::size_t next = end;
    while (next < text_.size() && (text_[next] == ' ' || text_[next] == '\t')) ++next;
    const bool is_key = quote != '`' && !after_colon_ && next < text_.size() && text_[next] == ':';
    if (!is_key && end - at_ > 2) {
      add(at_, end, after_colon_ ? ExactKind::kJsonLeaf : ExactKind::kQuoted);
    }
    after_quote_ = is_key;
    after_colon_ = false;
    at_ = end;
    return true;
  }

  void take_word() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && continues_word(begin)) ++at_;
    std::size_t end = at_;
    while (end > begin + 1 && is_joint(text_[end - 1]) && text_[end - 1] != '%' &&
           text_[end - 1] != '/') {
      --end;
    }
    const std::string_view word = text_.substr(begin, end - begin);
    const bool literal = word == "true" || word == "false" || word == "null";
    std::optional<ExactKind> kind = classify(word);
    if (after_colon_ && (kind == ExactKind::kNumber || literal)) kind = ExactKind::kJsonLeaf;
    if (kind.has_value()) add(begin, end, *kind);
    after_colon_ = after_quote_ = false;
  }

  bool continues_word(std::size_t begin) const {
    const char c = text_[at_];
    if (is_alnum(c) || is_joint(c)) return true;
    // The comma of $1,234.
    return c == ',' && is_digit(text_[at_ - 1]) && at_ + 1 < text_.size() &&
           is_digit(text_[at_ + 1]) && !is_letter(text_[begin]);
  }

  void add(std::size_t begin, std::size_t end, ExactKind kind) {
    found_.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), kind});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool after_quote_ = false;  // a key has just been read
  bool after_colon_ = false;
  std::vector<ExactValue> found_;
};

}  // namespace

std::vector<ExactValue> find_exact_values(std::string_view text) {
  MEMDECAY_CHECK(text.size() < UINT32_MAX);
  return ExactScanner(text).scan();
}

std::vector<std::uint8_t> mark_exact_tokens(std::span<const ExactValue> values,
                                            std::span<const std::uint32_t> token_ends) {
  std::vector<std::uint8_t> marks(token_ends.size(), 0);
  std::size_t value = 0;
  std::uint32_t begin = 0;
  for (std::size_t i = 0; i < token_ends.size(); ++i) {
    const std::uint32_t end = token_ends[i];
    MEMDECAY_CHECK(end >= begin);
    while (value < values.size() && values[value].end <= begin) ++value;
    if (value < values.size() && values[value].begin < end) marks[i] = 1;
    begin = end;
  }
  return marks;
}

float exact_share(std::span<const std::uint8_t> marks) {
  if (marks.empty()) return 0.0F;
  const auto marked = std::count_if(marks.begin(), marks.end(), [](auto m) { return m != 0; });
  return static_cast<float>(marked) / static_cast<float>(marks.size());
}

}  // namespace memdecay
