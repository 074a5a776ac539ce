// SeededRandom: the same numbers from the same seed on every machine and standard library.
//
// SplitMix64 (Steele, Lea, Flood 2014), because std::shuffle and the distributions of <random>
// differ between libraries, and a session list must not. Not for secrets. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memdecay {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  /// Evenly in [0, count). REQUIRES: count > 0. The bias of the remainder is below count / 2^64.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  /// Evenly in [0, 1).
  double unit() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }

  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace memdecay
