// slot_of: a vector as a map from small dense numbers, ids as they are given out anew.
//
// Any thread that owns the vector. Cost: O(1), amortized over the numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace memdecay {

/// values[index]; a vector that is too short doubles, and what is new is T().
template <typename T>
T& slot_of(std::vector<T>& values, std::size_t index) {
  if (index >= values.size()) values.resize(std::max(index + 1, 2 * values.size()));
  return values[index];
}

}  // namespace memdecay
