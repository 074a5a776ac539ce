// WordCache: the tokens of words that were seen before.
//
// A direct-mapped table of fixed size (1 MiB): a newcomer replaces what has its slot, so it never
// grows and no input can fill it up. Holds words of up to 30 bytes and 8 tokens. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "model/tokenizer/piece_map.h"

namespace memdecay {

class WordCache {
 public:
  WordCache() : slots_(kSlots) {}

  /// Empty: not there.
  std::span<const TokenId> find(std::string_view word) const {
    if (word.size() > kMaxBytes) return {};
    const Slot& slot = slots_[hash_bytes(word) % kSlots];
    if (slot.count == 0 || slot.length != word.size()) return {};
    if (std::memcmp(slot.bytes.data(), word.data(), word.size()) != 0) return {};
    return {slot.ids.data(), slot.count};
  }

  /// Keeps `ids`, numbers in [0, 2^31), for `word`; too long a word or too many ids are left out.
  void store(std::string_view word, std::span<const TokenId> ids) {
    if (word.size() > kMaxBytes || ids.empty() || ids.size() > kMaxIds) return;
    Slot& slot = slots_[hash_bytes(word) % kSlots];
    std::memcpy(slot.bytes.data(), word.data(), word.size());
    slot.length = static_cast<std::uint8_t>(word.size());
    slot.count = static_cast<std::uint8_t>(ids.size());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

  static constexpr std::size_t kMaxBytes = 30;
  static constexpr std::size_t kMaxIds = 8;

 private:
  static constexpr std::size_t kSlots = 1U << 14;
  struct Slot {
    std::array<char, kMaxBytes> bytes;
    std::uint8_t length = 0;
    std::uint8_t count = 0;
    std::array<TokenId, kMaxIds> ids;
  };
  static_assert(sizeof(Slot) == 64);

  std::vector<Slot> slots_;
};

}  // namespace memdecay
