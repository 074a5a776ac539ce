// TokenText: what each token stands for, as stored and as bytes of text.
//
// bytes(id) is what the token adds to a decoded text: the byte alphabet undone (kBpe), U+2581 as a
// space and "<0xAB>" as one byte (kSentencePiece), literal text for control and user-defined
// tokens. Immutable after create; any thread; all views live as long as the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "core/status.h"
#include "model/tokenizer/vocabulary.h"

namespace memdecay {

class TokenText {
 public:
  /// kCorrupt when pieces and types disagree in number, or a byte token names no byte.
  static Result<TokenText> create(const Vocabulary& vocabulary);

  std::size_t size() const { return types_.size(); }
  TokenType type(TokenId id) const { return types_[index(id)]; }
  /// The piece as the model file stores it.
  std::string_view piece(TokenId id) const { return pieces_.at(index(id)); }
  std::string_view bytes(TokenId id) const { return bytes_.at(index(id)); }
  std::uint32_t length(TokenId id) const { return bytes_.length(index(id)); }

 private:
  // Many short strings end to end: a quarter of the memory of std::strings.
  class Strings {
   public:
    void add(std::string_view text);
    std::string_view at(std::size_t i) const {
      return std::string_view(text_).substr(ends_[i], length(i));
    }
    std::uint32_t length(std::size_t i) const { return ends_[i + 1] - ends_[i]; }

   private:
    std::string text_;
    std::vector<std::uint32_t> ends_ = {0};
  };

  static std::size_t index(TokenId id) { return static_cast<std::size_t>(id); }

  std::vector<TokenType> types_;
  Strings pieces_;
  Strings bytes_;
};

/// `text` with every U+2581 as a space.
std::string unescape_spaces(std::string_view text);

/// The space mark of SentencePiece vocabularies, U+2581 in UTF-8.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

}  // namespace memdecay
