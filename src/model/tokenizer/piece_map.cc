#include "model/tokenizer/piece_map.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace memdecay {
namespace {

constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15U;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * kMultiplier;
  return hash ^ (hash >> 29);
}

}  // namespace

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = bytes.size() * kMultiplier;
  while (bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = mix(hash, word);
    bytes.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  for (const char c : bytes) rest = (rest << 8) | static_cast<unsigned char>(c);
  return mix(mix(hash, rest), hash >> 32);
}

PieceMap::PieceMap(const TokenText& text, std::size_t capacity)
    : text_(&text), slots_(std::bit_ceil(std::max<std::size_t>(2 * capacity, 4)), -1) {}

std::size_t PieceMap::slot_of(std::string_view bytes) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_bytes(bytes) & mask;
  while (slots_[slot] >= 0 && text_->bytes(slots_[slot]) != bytes) slot = (slot + 1) & mask;
  return slot;
}

void PieceMap::insert(TokenId id) {
  const std::string_view bytes = text_->bytes(id);
  TokenId& slot = slots_[slot_of(bytes)];
  if (slot < 0) slot = id;
  longest_ = std::max(longest_, bytes.size());
}

}  // namespace memdecay
