// ReferencePages: the naive oracle of an unbounded page table: a list of pages, each a list of
// positions. For tests only.
//
// It does position by position what PageTable does by arithmetic, and keeps no sizes, runs or
// references. Threads: one. Cost: whatever is plainest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/id.h"
#include "core/paged_kv.h"

namespace memdecay {

class ReferencePages {
 public:
  struct Page {
    std::vector<Position> positions;  ///< of its slots, in order
    KvFormat form;

    Position first() const { return positions.front(); }
    bool has_gaps() const {
      return positions.back() - positions.front() + 1 !=
             static_cast<std::int32_t>(positions.size());
    }
  };

  ReferencePages(int page_tokens, KvFormat own_form)
      : page_tokens_(static_cast<std::size_t>(page_tokens)), own_form_(own_form) {}

  const std::vector<Page>& pages() const { return pages_; }
  bool is_open() const { return open_; }
  /// How many pages, counted from the front, may be dropped or packed.
  std::size_t sealed() const { return pages_.size() - (open_ ? 1 : 0); }

  /// How many pages from the front hold every position from 0 on.
  std::size_t without_gaps() const {
    Position end = 0;
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      if (pages_[i].first() != end || pages_[i].has_gaps()) return i;
      end += static_cast<Position>(pages_[i].positions.size());
    }
    return pages_.size();
  }

  void append(Position position, bool cut) {
    if (cut || !open_) pages_.push_back({{}, own_form_});
    pages_.back().positions.push_back(position);
    open_ = pages_.back().positions.size() < page_tokens_;
  }

  /// A page that is there already, as PageTable::adopt() takes it.
  void adopt(Page page) {
    open_ = page.form == own_form_ && page.positions.size() < page_tokens_;
    pages_.push_back(std::move(page));
  }

  void truncate(Position to) {
    open_ = false;
    while (!pages_.empty() && pages_.back().first() >= to) pages_.pop_back();
    if (pages_.empty()) return;
    Page& last = pages_.back();
    const std::size_t before = last.positions.size();
    std::erase_if(last.positions, [&](Position p) { return p >= to; });
    open_ = last.positions.size() < before && last.form == own_form_ && !last.has_gaps() &&
            last.positions.back() + 1 == to;
  }

  void drop(const std::vector<Position>& first_positions) {
    std::erase_if(pages_, [&](const Page& page) {
      return std::find(first_positions.begin(), first_positions.end(), page.first()) !=
             first_positions.end();
    });
  }

  void replace(std::size_t index, KvFormat form) {
    pages_[index].form = form;
    if (index + 1 == pages_.size()) open_ = false;
  }

  /// Whether `count` pages from `first` on may be packed: sealed, alike, and fewer afterwards.
  bool can_pack(std::size_t first, std::size_t count) const {
    if (count < 2 || first + count > sealed()) return false;
    std::size_t slots = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      if (pages_[i].form != pages_[first].form || is_quantized(pages_[i].form)) return false;
      slots += pages_[i].positions.size();
    }
    return (slots + page_tokens_ - 1) / page_tokens_ < count;
  }

  void pack(std::size_t first, std::size_t count) {
    const auto at = [&](std::size_t i) { return pages_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::vector<Page> packed;
    for (std::size_t i = first; i < first + count; ++i)
      for (const Position position : pages_[i].positions) {
        if (packed.empty() || packed.back().positions.size() == page_tokens_)
          packed.push_back({{}, pages_[i].form});
        packed.back().positions.push_back(position);
      }
    pages_.erase(at(first), at(first + count));
    pages_.insert(at(first), packed.begin(), packed.end());
  }

  /// First positions of `count` pages from `first` on.
  std::vector<Position> names(std::size_t first, std::size_t count) const {
    std::vector<Position> names;
    for (std::size_t i = first; i < first + count; ++i) names.push_back(pages_[i].first());
    return names;
  }

 private:
  std::size_t page_tokens_;
  KvFormat own_form_;
  std::vector<Page> pages_;
  bool open_ = false;
};

}  // namespace memdecay
