// BpeModel: byte-level byte-pair encoding of one pre-token.
//
// The law: start from single bytes, again and again join the neighbouring pair whose merge ranks
// best (leftmost of equals), until no merge applies. Bytes that the vocabulary lacks are dropped
// before merging, as the reference does (decision 0102). Immutable after create; any thread, each
// with its own MergeList. O(n log n) in the bytes of the word.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "model/tokenizer/merge_list.h"
#include "model/tokenizer/token_text.h"

namespace memdecay {

class BpeModel {
 public:
  /// kCorrupt when a merge names a piece that the vocabulary does not have.
  static Result<BpeModel> create(const std::vector<std::string>& merges, const TokenText& text);

  /// Leaves the tokens of `word` in list.symbols(), their places relative to it.
  void encode(std::string_view word, MergeList& list) const;

 private:
  struct Merge {
    std::uint64_t pair = kFree;
    std::uint32_t rank = 0;
    TokenId id = -1;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  static std::uint64_t pair_of(TokenId left, TokenId right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
           static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t pair) const;
  std::optional<MergeStep> lookup(TokenId left, TokenId right) const;

  std::array<TokenId, 256> byte_ids_{};
  std::vector<Merge> merges_;  // open addressing, a power of two
};

}  // namespace memdecay
