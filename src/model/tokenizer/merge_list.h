// MergeList: joins neighbouring symbols, best pair first, until no pair is known.
//
// Both tokenizer kinds are this one loop; they differ in what a pair is worth. The order is: lowest
// priority number first, of equals the leftmost pair. Long lists use a linked list and a heap,
// O(n log n); short ones rescan an array, which is faster up to some twenty symbols. A scratch
// object: one thread, reused from word to word.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/id.h"

namespace memdecay {

struct MergeSymbol {
  TokenId id = -1;          ///< -1: a character that is no token
  std::uint32_t begin = 0;  ///< its bytes in the text that is tokenized
  std::uint32_t end = 0;
};

struct MergeStep {
  std::uint32_t priority = 0;
  TokenId id = -1;  ///< the token that the pair becomes
};

class MergeList {
 public:
  void clear() { symbols_.clear(); }
  void add(MergeSymbol symbol) { symbols_.push_back(symbol); }
  const std::vector<MergeSymbol>& symbols() const { return symbols_; }

  /// `lookup(left, right)` gives std::optional<MergeStep>. Afterwards symbols() is the result.
  template <typename Lookup>
  void merge(const Lookup& lookup) {
    if (symbols_.size() < 2) return;
    if (symbols_.size() <= kShort) {
      merge_short(lookup);
    } else {
      merge_long(lookup);
    }
  }

 private:
  static constexpr std::size_t kShort = 20;
  static constexpr std::uint32_t kNone = 0xFFFFFFFFU;

  struct Node {
    std::uint32_t previous = kNone;
    std::uint32_t next = kNone;
    bool alive = true;
  };
  struct Candidate {
    std::uint64_t order = 0;  // priority, then the index of the left symbol
    std::uint32_t end = 0;    // where the pair ended when it was queued: stale if it has grown
    std::uint32_t right = 0;
    TokenId id = -1;
    friend bool operator<(const Candidate& a, const Candidate& b) { return a.order > b.order; }
  };

  template <typename Lookup>
  void merge_short(const Lookup& lookup) {
    steps_.clear();
    for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) {
      steps_.push_back(lookup(symbols_[i], symbols_[i + 1]));
    }
    for (;;) {
      std::size_t best = steps_.size();
      for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (!steps_[i]) continue;
        if (best == steps_.size() || steps_[i]->priority < steps_[best]->priority) best = i;
      }
      if (best == steps_.size()) return;
      symbols_[best].id = steps_[best]->id;
      symbols_[best].end = symbols_[best + 1].end;
      symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(best));
      if (best > 0) steps_[best - 1] = lookup(symbols_[best - 1], symbols_[best]);
      if (best < steps_.size()) steps_[best] = lookup(symbols_[best], symbols_[best + 1]);
    }
  }

  template <typename Lookup>
  void queue(std::uint32_t left, std::uint32_t right, const Lookup& lookup) {
    if (left == kNone || right == kNone) return;
    const std::optional<MergeStep> step = lookup(symbols_[left], symbols_[right]);
    if (!step) return;
    const std::uint64_t order = (std::uint64_t{step->priority} << 32) | left;
    heap_.push_back({order, symbols_[right].end, right, step->id});
    std::push_heap(heap_.begin(), heap_.end());
  }

  void link_all() {
    const auto count = static_cast<std::uint32_t>(symbols_.size());
    nodes_.assign(count, Node());
    for (std::uint32_t i = 0; i < count; ++i) {
      nodes_[i].previous = i == 0 ? kNone : i - 1;
      nodes_[i].next = i + 1 == count ? kNone : i + 1;
    }
  }

  // Drops the dead symbols, keeps the order.
  void compact() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      if (nodes_[i].alive) symbols_[kept++] = symbols_[i];
    }
    symbols_.resize(kept);
  }

  template <typename Lookup>
  void merge_long(const Lookup& lookup) {
    link_all();
    heap_.clear();
    const auto count = static_cast<std::uint32_t>(symbols_.size());
    for (std::uint32_t i = 0; i + 1 < count; ++i) queue(i, i + 1, lookup);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Candidate candidate = heap_.back();
      heap_.pop_back();
      const auto left = static_cast<std::uint32_t>(candidate.order);
      const std::uint32_t right = candidate.right;
      // A symbol only ever grows to the right, so the same neighbour with the same end is the pair.
      if (!nodes_[left].alive || nodes_[left].next != right) continue;
      if (symbols_[right].end != candidate.end) continue;
      symbols_[left].id = candidate.id;
      symbols_[left].end = candidate.end;
      nodes_[right].alive = false;
      nodes_[left].next = nodes_[right].next;
      if (nodes_[left].next != kNone) nodes_[nodes_[left].next].previous = left;
      queue(nodes_[left].previous, left, lookup);
      queue(left, nodes_[left].next, lookup);
    }
    compact();
  }

  std::vector<MergeSymbol> symbols_;
  std::vector<std::optional<MergeStep>> steps_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
};

}  // namespace memdecay
