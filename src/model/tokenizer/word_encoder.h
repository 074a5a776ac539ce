// WordEncoder: the part of a tokenizer that turns text without special tokens into ids.
//
// Cuts the text (PreTokenizer patterns, or SentencePieceModel::cut), looks each word up in the
// workspace's cache and merges the rest. Immutable after create; any thread, one Workspace each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "model/tokenizer/bpe_model.h"
#include "model/tokenizer/encode_options.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/sentencepiece_model.h"
#include "model/tokenizer/token_text.h"
#include "model/tokenizer/vocabulary.h"
#include "model/tokenizer/word_cache.h"

namespace memdecay {

class WordEncoder {
 public:
  /// What one encode call needs for itself; its cache makes the next call faster, never different.
  struct Workspace {
    PreTokenizer::Scratch pre_tokenizer;
    MergeList list;
    WordCache cache;
    std::vector<std::uint32_t> ends;
    std::vector<MergeSymbol> symbols;
    std::vector<TokenId> ids;
  };

  /// `text` must outlive the encoder.
  static Result<WordEncoder> create(const Vocabulary& vocabulary, const TokenText& text);

  /// Appends the tokens of `run` to `tokens`, their places moved by `base`.
  Status encode(std::string_view run, std::uint32_t base, Workspace& workspace,
                std::vector<Token>& tokens) const;

 private:
  explicit WordEncoder(const TokenText& text) : text_(&text) {}

  void append_word(std::string_view word, std::uint32_t base, Workspace& workspace,
                   std::vector<Token>& tokens) const;
  /// Fills workspace.symbols; true when the ids follow from the bytes alone and cover them.
  bool merge_word(std::string_view word, Workspace& workspace) const;

  const TokenText* text_;
  std::optional<PreTokenizer> pre_tokenizer_;  // these three for kBpe, the last for the other kind
  std::optional<BpeModel> bpe_;
  std::optional<PieceMap> whole_words_;
  std::optional<SentencePieceModel> sentencepiece_;
};

}  // namespace memdecay
