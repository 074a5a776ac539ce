// A stable sort for comparisons that may throw or contradict themselves (NaN).
//
// Binary insertion: never reads outside of the range whatever the comparison says, which
// std::sort does not promise. O(n log n) comparisons, O(n^2) cheap moves.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace memdecay::jinja {

template <typename T, typename Less>
void stable_order(std::vector<T>* items, const Less& less) {
  std::vector<T> sorted;
  sorted.reserve(items->size());
  for (T& item : *items) {
    const auto at = std::upper_bound(sorted.begin(), sorted.end(), item, less);
    sorted.insert(at, std::move(item));
  }
  *items = std::move(sorted);
}

}  // namespace memdecay::jinja
