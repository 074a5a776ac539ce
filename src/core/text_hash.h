// FNV-1a over bytes: a short name or checksum, the same on every machine. Not against people who
// mean harm. Pure, any thread. Source: Fowler, Noll, Vo (draft-eastlake-fnv).
#pragma once

#include <cstdint>
#include <string_view>

namespace memdecay {

inline constexpr std::uint64_t kEmptyTextHash = 0xCBF29CE484222325U;

/// The hash of what `hash` stands for, and `text` behind it.
constexpr std::uint64_t text_hash_of_more(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}
constexpr std::uint64_t text_hash(std::string_view text, std::uint64_t seed = 0) {
  return text_hash_of_more(kEmptyTextHash ^ seed, text);
}

}  // namespace memdecay
