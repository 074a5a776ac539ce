#include "kv/index_set.h"

#include <bit>

#include "core/check.h"

namespace memdecay {
namespace {

constexpr std::uint64_t kFull = ~std::uint64_t{0};

std::size_t words_over(std::size_t bits) {
  return (bits + 63) / 64;
}

std::uint64_t bit_of(std::size_t index) {
  return std::uint64_t{1} << (index % 64);
}

}  // namespace

std::size_t IndexSet::words_for(std::int32_t capacity) {
  std::size_t total = 0;
  for (auto bits = static_cast<std::size_t>(capacity); bits > 0;) {
    const std::size_t words = words_over(bits);
    total += words;
    bits = words > 1 ? words : 0;
  }
  return total;
}

IndexSet::IndexSet(std::uint64_t* storage, std::int32_t capacity) : capacity_(capacity) {
  MEMDECAY_CHECK(storage != nullptr && capacity >= 1);
  for (auto bits = static_cast<std::size_t>(capacity); bits > 0;) {
    const std::size_t words = words_over(bits);
    level_[static_cast<std::size_t>(levels_++)] = storage;
    // Bits past the end stand for nothing: taken for ever.
    if (bits % 64 != 0) storage[words - 1] |= kFull << (bits % 64);
    storage += words;
    bits = words > 1 ? words : 0;
  }
}

bool IndexSet::contains(std::int32_t index) const {
  MEMDECAY_CHECK(index >= 0 && index < capacity_);
  const auto at = static_cast<std::size_t>(index);
  return (level_[0][at / 64] & bit_of(at)) != 0;
}

std::int32_t IndexSet::take_lowest() {
  MEMDECAY_CHECK(taken_ < capacity_);
  std::size_t index = 0;
  for (int l = levels_ - 1; l >= 0; --l) {
    const std::uint64_t word = level_[static_cast<std::size_t>(l)][index];
    MEMDECAY_CHECK(word != kFull);
    index = index * 64 + static_cast<std::size_t>(std::countr_one(word));
  }
  mark(index);
  ++taken_;
  return static_cast<std::int32_t>(index);
}

void IndexSet::mark(std::size_t index) {
  for (std::size_t l = 0; l < static_cast<std::size_t>(levels_); ++l) {
    std::uint64_t& word = level_[l][index / 64];
    word |= bit_of(index);
    if (word != kFull) return;
    index /= 64;
  }
}

void IndexSet::give_back(std::int32_t index) {
  MEMDECAY_CHECK(contains(index));
  auto at = static_cast<std::size_t>(index);
  for (std::size_t l = 0; l < static_cast<std::size_t>(levels_); ++l) {
    std::uint64_t& word = level_[l][at / 64];
    const bool was_full = word == kFull;
    word &= ~bit_of(at);
    if (!was_full) break;
    at /= 64;
  }
  --taken_;
}

bool IndexSet::consistent(std::int32_t limit) const {
  std::int64_t count = 0;
  for (std::int32_t i = 0; i < limit; ++i) count += contains(i) ? 1 : 0;
  if (count != taken_) return false;
  auto below = words_over(static_cast<std::size_t>(limit));
  for (std::size_t l = 1; l < static_cast<std::size_t>(levels_); ++l) {
    for (std::size_t w = 0; w < below; ++w) {
      const bool marked = (level_[l][w / 64] & bit_of(w)) != 0;
      if (marked != (level_[l - 1][w] == kFull)) return false;
    }
    below = words_over(below);
  }
  return true;
}

}  // namespace memdecay
