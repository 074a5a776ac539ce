// TopKHeap: the k best values seen so far, worst on top, in the caller's arrays.
//
// A value that is not a number ranks as minus infinity. Values must be offered by rising index: an
// equal value that comes later is worse. Offering costs one comparison for almost every value of a
// long array, O(log k) for the few that enter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace memdecay {

class TopKHeap {
 public:
  TopKHeap(std::int32_t* index, float* value, int k) : index_(index), value_(value), k_(k) {}

  bool full() const { return size_ == k_; }
  /// Once full, only values above this can enter.
  float threshold() const { return value_[0]; }

  void offer(float value, std::int32_t index) {
    const float rank = value == value ? value : -std::numeric_limits<float>::infinity();
    if (!full()) {
      value_[size_] = rank;
      index_[size_] = index;
      rise(size_++);
    } else if (rank > threshold()) {
      value_[0] = rank;
      index_[0] = index;
      sink(0, k_);
    }
  }

  /// Leaves the arrays best first. The heap is of no use afterwards.
  void sort() {
    for (int end = size_ - 1; end > 0; --end) {
      exchange(0, end);
      sink(0, end);
    }
  }

 private:
  bool worse(int a, int b) const {
    return value_[a] < value_[b] || (value_[a] == value_[b] && index_[a] > index_[b]);
  }
  void exchange(int a, int b) {
    std::swap(value_[a], value_[b]);
    std::swap(index_[a], index_[b]);
  }
  void rise(int i) {
    while (i > 0 && worse(i, (i - 1) / 2)) {
      exchange(i, (i - 1) / 2);
      i = (i - 1) / 2;
    }
  }
  void sink(int i, int end) {
    for (int child = 2 * i + 1; child < end; child = 2 * i + 1) {
      if (child + 1 < end && worse(child + 1, child)) ++child;
      if (!worse(child, i)) return;
      exchange(i, child);
      i = child;
    }
  }

  std::int32_t* index_;
  float* value_;
  int k_;
  int size_ = 0;
};

}  // namespace memdecay
