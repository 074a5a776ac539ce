// IndexSet: which of the indices 0 .. capacity-1 are taken; gives out the lowest free one.
//
// A tree of 64-bit words over storage that the caller owns: level 0 has a bit per index (1 =
// taken), each bit above says that a whole word below is taken. Zeroed storage is an empty set, so
// memory that was never touched needs no set-up. Lowest first keeps the used pages of a pool dense
// at its start, where huge pages cover them. Threads: one owner. Cost: O(log64 capacity), 4 words
// for 16 million indices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace memdecay {

class IndexSet {
 public:
  /// 64-bit words of storage that a set of `capacity` indices needs.
  static std::size_t words_for(std::int32_t capacity);

  IndexSet() = default;
  /// REQUIRES: capacity >= 1; words_for(capacity) zeroed words that outlive the set.
  IndexSet(std::uint64_t* storage, std::int32_t capacity);

  std::int32_t capacity() const { return capacity_; }
  std::int32_t taken() const { return taken_; }
  bool contains(std::int32_t index) const;
  /// REQUIRES: taken() < capacity().
  std::int32_t take_lowest();
  /// REQUIRES: contains(index).
  void give_back(std::int32_t index);
  /// Whether every upper bit agrees with the word below it, and the count with the bits of
  /// [0, limit). REQUIRES: no index >= limit was ever taken. Cost: O(limit).
  bool consistent(std::int32_t limit) const;

 private:
  static constexpr int kMaxLevels = 6;  // 64^6 > 2^31
  void mark(std::size_t index);

  std::array<std::uint64_t*, kMaxLevels> level_{};
  int levels_ = 0;
  std::int32_t capacity_ = 0;
  std::int32_t taken_ = 0;
};

}  // namespace memdecay
