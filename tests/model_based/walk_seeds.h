// How long the model-based tests walk, and by which random numbers.
//
// Two seeds a run, one fixed and one new. MEMDECAY_SEED=N runs that one alone, MEMDECAY_STEPS=N
// sets the number of operations per configuration.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "kv/random_walk.h"

namespace memdecay {

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

inline std::uint64_t steps_to_walk(std::uint64_t otherwise) {
  return number_from_environment("MEMDECAY_STEPS", otherwise);
}

/// The fixed one.
inline constexpr std::uint64_t kFirstSeed = 1;

inline std::vector<std::uint64_t> walk_seeds() {
  const std::uint64_t given = number_from_environment("MEMDECAY_SEED", 0);
  if (given != 0) return {given};
  std::random_device entropy;
  return {kFirstSeed, std::uint64_t{entropy()} + kFirstSeed + 1};
}

inline RandomWalk::Choose seeded_chooser(std::uint64_t seed) {
  return [random = std::mt19937_64(seed)](std::uint32_t bound) mutable {
    return static_cast<std::uint32_t>(random() % bound);
  };
}

/// Walks `steps` operations; what is wrong, empty when all is well.
inline std::string walk(RandomWalk& model, std::uint64_t seed, std::uint64_t steps) {
  const RandomWalk::Choose choose = seeded_chooser(seed);
  for (std::uint64_t step = 0; step < steps; ++step)
    if (std::string trouble = model.step(choose); !trouble.empty()) return trouble;
  return {};
}

}  // namespace memdecay
