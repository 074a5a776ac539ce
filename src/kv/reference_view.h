// ReferenceView: compares what a sequence shows of one layer group with the oracle. For tests only.
//
// Slots hold SlotPatterns of marker(position), a function of the token's marker and the group.
// Answers are empty when all is well, else what is wrong. Threads: one. Cost: O(slots).
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kv/reference_pages.h"
#include "kv/sequence.h"
#include "kv/slot_pattern.h"

namespace memdecay {

class ReferenceView {
 public:
  /// `markers` has one entry per token. REQUIRES: both outlive the view.
  ReferenceView(const Sequence& real, LayerGroupId group, const std::vector<std::uint32_t>& markers)
      : real_(real), group_(group), markers_(markers) {}

  std::uint64_t marker(Position position) const {
    constexpr std::uint64_t kGroupStep = std::uint64_t{1} << 32;  // groups hold other values
    return markers_[static_cast<std::size_t>(position)] + kGroupStep * group_.index();
  }
  std::uint64_t marker(const ReferencePages::Page& page, std::int32_t slot) const {
    return marker(page.positions[static_cast<std::size_t>(slot)]);
  }

  /// Whether the page's slots at `base` hold their markers, and finite values behind them.
  bool holds(const ReferencePages::Page& page, const KvPageLayout& layout,
             const std::byte* base) const {
    const KvPageRef ref{.base = const_cast<std::byte*>(base)};  // only read
    bool all = true;
    for (std::int32_t slot = 0; slot < layout.page_tokens; ++slot) {
      const SlotPattern pattern(layout, ref, slot);
      const bool filled = slot < static_cast<std::int32_t>(page.positions.size());
      all = all && (filled ? pattern.holds(marker(page, slot)) : pattern.finite());
    }
    return all;
  }

  std::string compare(const ReferencePages& pages, std::int32_t window) const {
    if (real_.size() != size()) return fmt::format("{} tokens, not {}", real_.size(), size());
    return window > 0 ? compare_window(window) : compare_pages(pages);
  }

 private:
  Position size() const { return static_cast<Position>(markers_.size()); }

  std::string compare_pages(const ReferencePages& pages) const {
    const PagedKvView view = real_.view(group_);
    const PageTable& table = real_.table(group_);
    if (table.is_open() != pages.is_open()) return "open where the oracle is not, or the reverse";
    if (view.pages.size() != pages.pages().size() || view.first_page_number != 0)
      return fmt::format("{} pages instead of {}", view.pages.size(), pages.pages().size());
    std::vector<bool> held(markers_.size());
    for (std::size_t i = 0; i < view.pages.size(); ++i) {
      const KvPageRef& ref = view.pages[i];
      const ReferencePages::Page& page = pages.pages()[i];
      if (ref.first_position != page.first() || ref.format != page.form ||
          ref.filled != static_cast<std::int32_t>(page.positions.size()))
        return fmt::format("the page at {} should be that at {}", ref.first_position, page.first());
      if (!holds(page, view.layout->in(page.form), ref.base))
        return fmt::format("the page at {} holds other values", ref.first_position);
      for (const Position position : page.positions) {
        if (table.find(position) != i) return fmt::format("position {} is not found", position);
        held[static_cast<std::size_t>(position)] = true;
      }
    }
    for (Position p = 0; p < size(); ++p)
      if (!held[static_cast<std::size_t>(p)] && table.find(p).has_value())
        return fmt::format("position {} was dropped and is found", p);
    return {};
  }

  std::string compare_window(std::int32_t window) const {
    const PagedKvView view = real_.view(group_);
    const Position needed = std::max(0, size() - window + 1);
    Position position = view.first_page_number * view.layout->page_tokens;
    if (position > needed) return fmt::format("starts at {}, needs {}", position, needed);
    for (const KvPageRef& ref : view.pages) {
      if (ref.first_position != position) return fmt::format("no position {}", position);
      ReferencePages::Page page{{}, ref.format};
      for (; page.positions.size() < static_cast<std::size_t>(ref.filled); ++position)
        page.positions.push_back(position);
      if (!holds(page, *view.layout, ref.base))
        return fmt::format("the page at {} holds other values", ref.first_position);
    }
    return position == size() ? "" : fmt::format("ends at {} of {}", position, size());
  }

  const Sequence& real_;
  LayerGroupId group_;
  const std::vector<std::uint32_t>& markers_;
};

}  // namespace memdecay
