// PaidVector: an array whose capacity is paid from a KvBudget.
//
// Growing is plan, pay, apply: growth_for() says which capacity `count` items need, the caller
// reserves that many items' bytes, grow() takes them from the reservation. Old and new array are
// both charged while items move. Invariant: bytes() = capacity * sizeof(T).
// The caller keeps items() within the capacity. Threads: one owner. Cost: adding is O(1) in the
// mean, since capacity doubles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/check.h"
#include "kv/kv_budget.h"

namespace memdecay {

template <typename T>
class PaidVector {
 public:
  std::vector<T>& items() { return items_; }
  const std::vector<T>& items() const { return items_; }
  std::uint64_t bytes() const { return memory_.bytes(); }
  bool is_paid() const { return memory_.bytes() == items_.capacity() * sizeof(T); }

  /// The capacity to grow to for `count` items; 0 where they fit.
  std::size_t growth_for(std::size_t count) const {
    if (count <= items_.capacity()) return 0;
    return std::max({count, 2 * items_.capacity(), std::size_t{8}});
  }
  /// REQUIRES: capacity is 0 (nothing happens) or above the present one,
  /// paid.bytes() >= capacity * sizeof(T).
  void grow(std::size_t capacity, BudgetReservation& paid) {
    if (capacity == 0) return;
    BudgetReservation grown = paid.split(capacity * sizeof(T));
    items_.reserve(capacity);
    MEMDECAY_CHECK(items_.capacity() == capacity);
    memory_ = std::move(grown);
  }

 private:
  BudgetReservation memory_;  // dies after the array
  std::vector<T> items_;
};

}  // namespace memdecay
