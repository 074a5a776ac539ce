// Tokenizer: text to token ids and back, exactly as the model's own tokenizer does it.
//
// It owns everything that a Vocabulary says; it knows nothing of files, templates or messages. The
// caller says which bytes of a text may spell control tokens (EncodeOptions); between recognized
// control tokens the text is one run, whatever the ranges, so ids equal those of the whole text.
//
// Invariants: for text t without special tokens, decode(encode(t)) == t for every byte string,
// provided the vocabulary has all bytes (otherwise the missing bytes are dropped, decision 0102);
// tokens are in order, token k ends where or before token k+1 begins. All const methods are safe
// from any thread; each call borrows a workspace (about 1.1 MiB, kept for the next call). Encoding
// is O(n log n) at worst, for any text. Errors: kInvalidArgument for wrong ranges and for texts of
// 4 GiB and more.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "core/status.h"
#include "model/tokenizer/encode_options.h"
#include "model/tokenizer/vocabulary.h"

namespace memdecay {

struct DecodeOptions {
  bool control = false;  ///< control tokens as their text; otherwise they add nothing
  /// Where the model adds a space before a text: take it away again at the start of the tokens and
  /// behind each control token.
  bool strip_space_prefix = true;
};

class Tokenizer {
 public:
  /// kCorrupt for a vocabulary that contradicts itself; kUnsupported, with the name, for a
  /// pre-tokenizer that is not known.
  static Result<std::unique_ptr<Tokenizer>> create(const Vocabulary& vocabulary);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  Result<std::vector<Token>> encode(std::string_view text, const EncodeOptions& options) const;

  /// The bytes that the token stands for; not always complete UTF-8, see TextStream. An id outside
  /// of the vocabulary is "".
  std::string_view decode(TokenId id, bool control = false) const;
  std::string decode(std::span<const TokenId> ids, const DecodeOptions& options = {}) const;
  /// The token as the vocabulary spells it, for people; "" outside of it.
  std::string_view piece(TokenId id) const;

  std::size_t vocabulary_size() const;
  VocabularyKind kind() const;
  /// Control or unknown: what decode leaves out by default.
  bool is_control(TokenId id) const;
  /// The control or user-defined token of exactly this text.
  std::optional<TokenId> find_special(std::string_view text) const;
  TokenId bos() const;  ///< -1: the model names none; so for the others
  TokenId eos() const;
  TokenId eot() const;

 private:
  class Engine;
  explicit Tokenizer(std::unique_ptr<Engine> engine);
  std::unique_ptr<Engine> engine_;
};

}  // namespace memdecay
