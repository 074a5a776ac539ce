// SentencePieceModel: score-based merging with byte fallback, as SentencePiece's BPE models do.
//
// The law: start from single characters, again and again join the neighbouring pair whose joined
// text is the piece of highest score (leftmost of equals); then what is no piece becomes its byte
// tokens, or <unk> where the vocabulary has none. Control, unknown, byte and user-defined pieces
// never come out of a merge. Input has spaces as spaces, not as U+2581. Immutable after create; any
// thread, each with its own MergeList. Source: Kudo and Richardson 2018, and the reference program.
//
// cut() makes it fast without changing a result: a merge never crosses a place where no piece has
// these two neighbouring bytes, so a text falls into independent chunks there.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "model/tokenizer/merge_list.h"
#include "model/tokenizer/piece_map.h"
#include "model/tokenizer/token_text.h"

namespace memdecay {

class SentencePieceModel {
 public:
  /// `text` must outlive the model. kCorrupt when scores and pieces disagree in number.
  static Result<SentencePieceModel> create(const std::vector<float>& scores, TokenId unknown,
                                           const TokenText& text);

  /// Bytes of the first chunk of `text`, >= 1. REQUIRES: !text.empty().
  std::size_t cut(std::string_view text) const;

  /// Appends the tokens of `chunk`, their places relative to it. False: they depend on more than
  /// their bytes (an unknown spans them), so they must not be cached.
  bool encode(std::string_view chunk, MergeList& list, std::vector<MergeSymbol>& tokens) const;

 private:
  SentencePieceModel(const TokenText& text) : text_(&text), pieces_(text, text.size()) {}  // NOLINT

  void allow_borders(std::string_view piece);
  void rank_scores(const std::vector<float>& scores);
  std::optional<MergeStep> lookup(std::string_view joined) const;
  void append_piece(std::string_view chunk, const MergeSymbol& symbol,
                    std::vector<MergeSymbol>& tokens) const;
  void append_bytes(std::string_view chunk, const MergeSymbol& symbol,
                    std::vector<MergeSymbol>& tokens) const;

  const TokenText* text_;
  PieceMap pieces_;
  std::vector<std::uint32_t> priorities_;  // by token: equal scores, equal numbers
  std::array<TokenId, 256> byte_ids_{};
  TokenId unknown_ = -1;
  bool has_byte_fallback_ = false;
  std::bitset<65536> inner_borders_;  // last byte of a character, first byte of the next
};

}  // namespace memdecay
