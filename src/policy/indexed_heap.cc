#include "policy/indexed_heap.h"

#include <algorithm>

#include "core/check.h"

namespace memdecay {

bool IndexedHeap::less(std::size_t a, std::size_t b) {
  ++steps_;
  return nodes_[a].key < nodes_[b].key;
}

void IndexedHeap::place(std::size_t slot, Node node) {
  nodes_[slot] = node;
  slots_[static_cast<std::size_t>(node.item)] = static_cast<std::int32_t>(slot);
}

void IndexedHeap::sift_up(std::size_t slot) {
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 2;
    if (!less(slot, parent)) return;
    const Node moved = nodes_[slot];
    place(slot, nodes_[parent]);
    place(parent, moved);
    slot = parent;
  }
}

void IndexedHeap::sift_down(std::size_t slot) {
  while (true) {
    std::size_t child = 2 * slot + 1;
    if (child >= nodes_.size()) return;
    if (child + 1 < nodes_.size() && less(child + 1, child)) ++child;
    if (!less(child, slot)) return;
    const Node moved = nodes_[slot];
    place(slot, nodes_[child]);
    place(child, moved);
    slot = child;
  }
}

bool IndexedHeap::contains(std::int32_t item) const {
  const auto index = static_cast<std::size_t>(item);
  return index < slots_.size() && slots_[index] >= 0;
}

void IndexedHeap::set(std::int32_t item, HeapKey key) {
  MEMDECAY_CHECK(item >= 0);
  const auto index = static_cast<std::size_t>(item);
  if (index >= slots_.size()) slots_.resize(std::max(index + 1, 2 * slots_.size()), -1);
  if (slots_[index] < 0) {
    nodes_.push_back({key, item});
    slots_[index] = static_cast<std::int32_t>(nodes_.size() - 1);
    sift_up(nodes_.size() - 1);
    return;
  }
  const auto slot = static_cast<std::size_t>(slots_[index]);
  const bool falls = key < nodes_[slot].key;
  nodes_[slot].key = key;
  if (falls) {
    sift_up(slot);
  } else {
    sift_down(slot);
  }
}

void IndexedHeap::remove(std::int32_t item) {
  if (!contains(item)) return;
  const auto slot = static_cast<std::size_t>(slots_[static_cast<std::size_t>(item)]);
  const Node last = nodes_.back();
  nodes_.pop_back();
  slots_[static_cast<std::size_t>(item)] = -1;
  if (slot == nodes_.size()) return;
  place(slot, last);
  sift_up(slot);
  sift_down(static_cast<std::size_t>(slots_[static_cast<std::size_t>(last.item)]));
}

void HeapWalk::push_entry(Entry entry) {
  frontier_.push_back(entry);
  std::push_heap(frontier_.begin(), frontier_.end(), [this](const Entry& a, const Entry& b) {
    ++steps_;
    return b.key < a.key;
  });
}

void HeapWalk::push_slot(std::int32_t heap, std::size_t slot) {
  const Source& source = sources_[static_cast<std::size_t>(heap)];
  if (slot >= source.heap->size()) return;
  const IndexedHeap::Node& node = source.heap->nodes()[slot];
  push_entry({{node.key.key - source.offset, node.key.tie},
              node.item,
              heap,
              static_cast<std::int32_t>(slot)});
}

void HeapWalk::add(const IndexedHeap& heap, double offset) {
  sources_.push_back({&heap, offset});
  push_slot(static_cast<std::int32_t>(sources_.size()) - 1, 0);
}

void HeapWalk::push(double score, std::int64_t tie, std::int32_t item) {
  push_entry({{score, tie}, item, -1, 0});
}

std::optional<HeapWalk::Step> HeapWalk::next() {
  ++steps_;
  if (frontier_.empty()) return std::nullopt;
  std::pop_heap(frontier_.begin(), frontier_.end(), [this](const Entry& a, const Entry& b) {
    ++steps_;
    return b.key < a.key;
  });
  const Entry lowest = frontier_.back();
  frontier_.pop_back();
  if (lowest.heap >= 0) {
    push_slot(lowest.heap, 2 * static_cast<std::size_t>(lowest.slot) + 1);
    push_slot(lowest.heap, 2 * static_cast<std::size_t>(lowest.slot) + 2);
  }
  return Step{lowest.key.key, lowest.item, lowest.heap};
}

}  // namespace memdecay
