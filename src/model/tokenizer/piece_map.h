// PieceMap: from bytes to the token that stands for exactly these bytes.
//
// Open addressing over token ids; the strings stay in TokenText, which must outlive the map. The
// first token inserted with some bytes keeps them. Build on one thread; then const, any thread.
// find: one hash over the bytes and, at load 1/2, about 1.5 probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "model/tokenizer/token_text.h"

namespace memdecay {

/// 64 well-mixed bits of `bytes`.
std::uint64_t hash_bytes(std::string_view bytes);

class PieceMap {
 public:
  PieceMap(const TokenText& text, std::size_t capacity);

  /// REQUIRES: fewer than `capacity` tokens inserted before.
  void insert(TokenId id);
  /// -1: no token.
  TokenId find(std::string_view bytes) const {
    return bytes.size() > longest_ ? -1 : slots_[slot_of(bytes)];
  }

 private:
  std::size_t slot_of(std::string_view bytes) const;

  const TokenText* text_;
  std::vector<TokenId> slots_;  // a power of two; -1 is free
  std::size_t longest_ = 0;
};

}  // namespace memdecay
