// ReferenceSequence: a Sequence with its naive oracle, for ReferenceCache only.
//
// The oracle is a marker per token and, for the unbounded groups, ReferencePages. Every K and V
// value of a slot is a function of (marker, group, layer, head, half, dim), written through
// page_for_write() and read back through view(). Each operation is done on both sides; what it
// returns is empty when all is well, else what is wrong. A refusal is counted in `refused`, and
// must have left the budget as it was; compare() finds whatever else it changed.
// REQUIRES of the cache: unbounded groups have pages of the same number of slots.
// Threads: one. Cost: O(slots).
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv_cache.h"
#include "kv/reference_pages.h"
#include "kv/reference_view.h"
#include "kv/slot_pattern.h"
#include "kv/take_for_test.h"

namespace memdecay {

class ReferenceSequence {
 public:
  ReferenceSequence(KvCache& cache, SequenceHandle real)
      : cache_(&cache), real_(std::move(real)), pages_(16, KvFormat::kF16) {
    for (std::size_t g = 0; g < cache.groups().size(); ++g)
      if (cache.groups()[g].window == 0) unbounded_.push_back(g);
    if (unbounded_.empty()) return;
    const KvPageLayout& layout = cache.groups()[unbounded_.front()].layout;
    pages_ = ReferencePages(layout.page_tokens, layout.format);
  }

  Sequence& real() { return *real_; }
  const ReferencePages& pages() const { return pages_; }
  Position size() const { return static_cast<Position>(markers_.size()); }
  std::uint64_t refused() const { return refused_; }

  /// `new_markers` holds one marker per token.
  std::string append(const std::vector<std::uint32_t>& new_markers,
                     const std::vector<Position>& cuts) {
    trim();
    const auto tokens = static_cast<std::int32_t>(new_markers.size());
    const std::uint64_t needed = bytes_to_append(*real_, *cache_, tokens, cuts);
    const std::string trouble = attempt([&] {
      const Room room = real_->try_append(tokens, cuts);
      if (room.refusal == Room::Refusal::kBudget && room.missing_bytes != missing(needed))
        wrong_ = "a refusal that names the wrong number of bytes";
      return room;
    });
    if (!done_) return trouble;
    const Position begin = size();
    real_->check_writable(begin, begin + tokens);
    for (const std::uint32_t marker : new_markers) {
      const bool cut = std::find(cuts.begin(), cuts.end(), size()) != cuts.end();
      if (!unbounded_.empty()) pages_.append(size(), cut);
      markers_.push_back(marker);
      write(size() - 1);
    }
    return trouble;
  }

  /// `cut_refused` says whether a window was in the way.
  std::string truncate(Position to, bool& cut_refused) {
    const bool allowed = to == 0 || to == size() || to >= real_->earliest_cut();
    cut_refused = !allowed;
    if (!allowed && to >= trimmed_at_ - cache_->config().cut_back_tokens)
      return "a cut back that was promised is not allowed";
    if (real_->try_truncate(to) != allowed) return "earliest_cut and try_truncate disagree";
    if (allowed && to < size()) pages_.truncate(to);
    if (allowed) markers_.resize(static_cast<std::size_t>(to));
    if (to == 0) trimmed_at_ = 0;
    return {};
  }

  void trim() {
    real_->trim();
    trimmed_at_ = std::max(trimmed_at_, size());
  }

  std::string drop(const std::vector<Position>& names) {
    std::uint64_t freed = 0;
    for (const std::size_t g : unbounded_)
      for (const Position name : names) {
        const PageHandle& page = page_at(*real_, id(g), name);
        if (page.exclusive()) freed += page.pool().stride_bytes();
      }
    const std::uint64_t bytes = cache_->budget().current_bytes();
    real_->drop(names);
    pages_.drop(names);
    const std::uint64_t left = cache_->budget().current_bytes();
    return left + freed == bytes ? ""
                                 : fmt::format("{} bytes were freed, not {}", bytes - left, freed);
  }

  std::string replace(std::size_t index, KvFormat form) {
    const ReferencePages::Page& page = pages_.pages()[index];
    std::size_t calls = 0;
    const auto convert = [&](const KvPageLayout& from, const std::byte* source,
                             const KvPageLayout& to, std::byte* target, std::int32_t filled) {
      const std::size_t g = unbounded_[calls++];
      const KvPageLayout& own = cache_->groups()[g].layout;
      if (from != own.in(page.form) || to != own.in(form)) wrong_ = "a convert of other layouts";
      if (filled != static_cast<std::int32_t>(page.positions.size())) wrong_ = "another fill";
      const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
      if (!std::all_of(target, target + to.page_bytes(), is_zero)) wrong_ = "a used target";
      if (!view(g).holds(page, from, source)) wrong_ = "a convert of another page";
      const KvPageRef ref{.base = target};
      for (std::int32_t slot = 0; slot < filled; ++slot)
        SlotPattern(to, ref, slot).write(view(g).marker(page, slot));
    };
    const std::string trouble =
        attempt([&] { return real_->try_replace(page.first(), form, convert); });
    if (!done_) return trouble;
    pages_.replace(index, form);
    return calls == unbounded_.size() ? trouble : "not every group was converted";
  }

  std::string pack(std::size_t first, std::size_t count) {
    const std::string trouble =
        attempt([&] { return real_->pack_pages(pages_.names(first, count)); });
    if (done_) pages_.pack(first, count);
    return trouble;
  }

  /// The fork, or nothing where there was no room.
  std::optional<ReferenceSequence> fork(std::string& trouble) {
    SequenceHandle copy;
    trouble = attempt([&] {
      copy = real_->try_fork();
      return copy != nullptr ? Room{} : Room{Room::Refusal::kBudget, 1};
    });
    if (copy == nullptr) return std::nullopt;
    if (copy->memory().exclusive_pages != 0) trouble = "a fresh fork has a page of its own";
    ReferenceSequence pair(*cache_, std::move(copy));
    pair.markers_ = markers_;
    pair.pages_ = pages_;
    pair.trimmed_at_ = trimmed_at_;
    return pair;
  }

  /// An empty sequence takes the first `count` pages of `source`, which have no gaps, the last one
  /// up to `last_fill` slots.
  std::string adopt(const ReferenceSequence& source, std::size_t count, std::size_t last_fill,
                    const std::vector<PageHandle>& handles) {
    std::vector<std::int32_t> fills;
    ReferencePages pages = pages_;
    Position end = 0;
    for (std::size_t i = 0; i < count; ++i) {
      ReferencePages::Page page = source.pages_.pages()[i];
      if (i + 1 == count) page.positions.resize(last_fill);
      fills.push_back(static_cast<std::int32_t>(page.positions.size()));
      end += fills.back();
      pages.adopt(std::move(page));
    }
    const std::string trouble = attempt([&] { return real_->try_adopt(fills, handles); });
    if (!done_) return trouble;
    pages_ = std::move(pages);
    markers_.assign(source.markers_.begin(), source.markers_.begin() + end);
    return trouble;
  }

  std::string compare() const {
    for (std::size_t g = 0; g < cache_->groups().size(); ++g) {
      const std::string trouble = view(g).compare(pages_, cache_->groups()[g].window);
      if (!trouble.empty()) return fmt::format("group {}: {}", g, trouble);
    }
    return {};
  }

 private:
  static LayerGroupId id(std::size_t g) { return LayerGroupId(static_cast<std::int32_t>(g)); }
  std::uint64_t missing(std::uint64_t bytes) const { return cache_->budget().missing_bytes(bytes); }

  template <typename Operation>
  std::string attempt(const Operation& operation) {
    const std::uint64_t bytes = cache_->budget().current_bytes();
    wrong_.clear();
    const Room room = operation();
    done_ = static_cast<bool>(room);
    if (done_) return wrong_;
    ++refused_;
    if (room.missing_bytes == 0) return "a refusal that misses nothing";
    if (cache_->budget().current_bytes() != bytes) return "a refusal that took bytes";
    return wrong_;
  }

  ReferenceView view(std::size_t g) const { return {*real_, id(g), markers_}; }
  void write(Position position) const {
    for (std::size_t g = 0; g < cache_->groups().size(); ++g) {
      const KvPageRef page = real_->page_for_write(id(g), position);
      const std::int32_t slot = position - page.first_position;
      SlotPattern(cache_->groups()[g].layout, page, slot).write(view(g).marker(position));
    }
  }

  KvCache* cache_;
  SequenceHandle real_;
  std::vector<std::uint32_t> markers_;
  ReferencePages pages_;
  std::vector<std::size_t> unbounded_;  // groups
  Position trimmed_at_ = 0;             // the largest size at which old pages may have been let go
  std::uint64_t refused_ = 0;
  bool done_ = false;  // whether the last attempt had room
  std::string wrong_;
};

}  // namespace memdecay
