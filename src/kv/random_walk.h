// RandomWalk: a part of the system and a naive oracle, driven through the same random operations;
// what the model-based tests and the fuzzers have in common, never in the product.
//
// The numbers come from the caller: a test's seeded generator, a fuzzer's bytes. Threads: one.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "core/check.h"

namespace memdecay {

class RandomWalk {
 public:
  /// Gives a number in [0, bound). REQUIRES of it: bound >= 1.
  using Choose = std::function<std::uint32_t(std::uint32_t bound)>;

  RandomWalk() = default;
  virtual ~RandomWalk() = default;
  RandomWalk(const RandomWalk&) = delete;
  RandomWalk& operator=(const RandomWalk&) = delete;

  /// One operation; empty when all is well, else what happened and what is wrong.
  std::string step(const Choose& choose) {
    ++steps_;
    std::string trouble = perform(choose);
    if (trouble.empty()) trouble = compare();
    return trouble.empty() ? trouble : fmt::format("step {}, {}: {}", steps_, done_, trouble);
  }
  /// Lets everything go; says what is left, empty when nothing is.
  virtual std::string finish() = 0;
  std::uint64_t steps() const { return steps_; }

 protected:
  std::string done_;  ///< the operation, for whoever reads a failure

 private:
  /// Does something to both; what is wrong with what came out.
  virtual std::string perform(const Choose& choose) = 0;
  /// What is wrong between operations.
  virtual std::string compare() = 0;

  std::uint64_t steps_ = 0;
};

/// Hands out a fuzzer's bytes as numbers, zeros at the end.
class ByteChooser {
 public:
  ByteChooser(const std::uint8_t* bytes, std::size_t count) : next_(bytes), end_(bytes + count) {}
  bool empty() const { return next_ == end_; }
  std::uint32_t operator()(std::uint32_t bound) {
    std::uint32_t value = 0;
    for (std::uint32_t reach = 1; reach < bound && !empty(); reach <<= 8) {
      value = value << 8 | *next_++;
      if (reach > (1U << 23)) break;
    }
    return value % bound;
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

/// For fuzzers: walks until the bytes end; any trouble ends the process.
inline void walk_or_die(RandomWalk& walk, ByteChooser& choose) {
  std::string trouble;
  for (int step = 0; step < 300 && !choose.empty() && trouble.empty(); ++step)
    trouble = walk.step([&](std::uint32_t bound) { return choose(bound); });
  if (trouble.empty()) trouble = walk.finish();
  if (!trouble.empty()) std::fprintf(stderr, "%s\n", trouble.c_str());
  MEMDECAY_CHECK(trouble.empty());
}

}  // namespace memdecay
