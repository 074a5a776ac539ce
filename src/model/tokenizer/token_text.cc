#include "model/tokenizer/token_text.h"

#include <charconv>
#include <limits>
#include <optional>

#include "model/tokenizer/byte_alphabet.h"

namespace memdecay {
namespace {

constexpr std::size_t kMaxTokens = 1U << 24;
constexpr std::size_t kMaxTextBytes = 1U << 31;

std::optional<char> byte_of_byte_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  unsigned value = 0;
  const char* end = piece.data() + 5;
  const auto parsed = std::from_chars(piece.data() + 3, end, value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return static_cast<char>(value);
}

bool is_literal(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUserDefined ||
         type == TokenType::kUnknown;
}

Result<std::string> text_bytes(VocabularyKind kind, TokenType type, std::string_view piece) {
  if (type == TokenType::kByte) {
    if (const auto byte = byte_of_byte_piece(piece)) return std::string(1, *byte);
    return make_status(StatusCode::kCorrupt, "the byte token '{}' names no byte", piece);
  }
  if (kind == VocabularyKind::kSentencePiece) {
    return type == TokenType::kControl ? std::string(piece) : unescape_spaces(piece);
  }
  if (is_literal(type)) return std::string(piece);
  return bytes_of_byte_alphabet(piece).value_or(std::string(piece));
}

}  // namespace

void TokenText::Strings::add(std::string_view text) {
  text_ += text;
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
}

std::string unescape_spaces(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find(kSpaceMark, at), text.size());
    plain += text.substr(at, mark - at);
    if (mark < text.size()) plain += ' ';
    at = mark + kSpaceMark.size();
  }
  return plain;
}

Result<TokenText> TokenText::create(const Vocabulary& vocabulary) {
  const std::size_t count = vocabulary.pieces.size();
  if (count == 0) return make_status(StatusCode::kCorrupt, "the vocabulary has no tokens");
  std::size_t total_bytes = 0;
  for (const std::string& piece : vocabulary.pieces) total_bytes += piece.size();
  if (count > kMaxTokens || total_bytes > kMaxTextBytes) {
    return make_status(StatusCode::kCorrupt, "a vocabulary of {} tokens and {} bytes is too large",
                       count, total_bytes);
  }
  if (!vocabulary.types.empty() && vocabulary.types.size() != count) {
    return make_status(StatusCode::kCorrupt, "the vocabulary has {} tokens but {} token types",
                       count, vocabulary.types.size());
  }
  TokenText text;
  text.types_ = vocabulary.types;
  text.types_.resize(count, TokenType::kNormal);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& piece = vocabulary.pieces[i];
    MEMDECAY_ASSIGN_OR_RETURN(const std::string bytes,
                              text_bytes(vocabulary.kind, text.types_[i], piece));
    text.pieces_.add(piece);
    text.bytes_.add(bytes);
  }
  return text;
}

}  // namespace memdecay
