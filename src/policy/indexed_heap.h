// IndexedHeap: a binary min-heap of small numbers (items), where each item's place is known.
//
// set() and remove() of any item cost O(log n). Read in order without changing it: a HeapWalk holds
// a frontier of nodes, so the k lowest items of R heaps cost O((R + k) log(R + k)). Equal keys are
// ordered by their tie, which is unique, so the order does not depend on history.
// Counts its comparisons. Threads: one owner; any number of walks while nobody writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace memdecay {

struct HeapKey {
  double key = 0;
  std::int64_t tie = 0;
  friend bool operator<(const HeapKey& a, const HeapKey& b) {
    return a.key != b.key ? a.key < b.key : a.tie < b.tie;
  }
  friend bool operator==(const HeapKey&, const HeapKey&) = default;
};

class IndexedHeap {
 public:
  struct Node {
    HeapKey key;
    std::int32_t item;
  };

  /// Inserts, or moves to a new key. REQUIRES: item >= 0.
  void set(std::int32_t item, HeapKey key);
  /// Nothing happens where it is not in.
  void remove(std::int32_t item);
  bool contains(std::int32_t item) const;
  std::size_t size() const { return nodes_.size(); }
  bool empty() const { return nodes_.empty(); }
  const Node& top() const { return nodes_.front(); }
  std::span<const Node> nodes() const { return nodes_; }
  std::uint64_t steps() const { return steps_; }

 private:
  bool less(std::size_t a, std::size_t b);
  void place(std::size_t slot, Node node);
  void sift_up(std::size_t slot);
  void sift_down(std::size_t slot);

  std::vector<Node> nodes_;
  std::vector<std::int32_t> slots_;  // by item; -1 where it is not in
  std::uint64_t steps_ = 0;
};

/// Goes through several heaps in the order of key - offset, lowest first. The heaps stay unchanged
/// while it lives.
class HeapWalk {
 public:
  struct Step {
    double score;
    std::int32_t item;
    std::int32_t heap;
  };

  void add(const IndexedHeap& heap, double offset);
  /// An entry of its own, in no heap: it comes when its score's turn is.
  void push(double score, std::int64_t tie, std::int32_t item);
  std::optional<Step> next();
  std::uint64_t steps() const { return steps_; }

 private:
  struct Entry {
    HeapKey key;
    std::int32_t item;
    std::int32_t heap;  // -1: pushed
    std::int32_t slot;
  };
  struct Source {
    const IndexedHeap* heap;
    double offset;
  };
  void push_slot(std::int32_t heap, std::size_t slot);
  void push_entry(Entry entry);

  std::vector<Source> sources_;
  std::vector<Entry> frontier_;
  std::uint64_t steps_ = 0;
};

}  // namespace memdecay
