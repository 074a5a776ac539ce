#include "model/transformer/attention_plan.h"

#include <algorithm>

#include "core/check.h"

namespace memdecay {
void AttentionPlan::build(const ForwardInput& input, int group, const KvPageLayout& layout,
                          int window) {
  items_.clear();
  merges_.clear();
  stores_.clear();
  segments_.clear();
  first_segment_.assign(1, 0);
  first_row_block_.assign(1, 0);
  partial_slots_ = max_segments_ = max_segment_pages_ = max_pages_ = 0;
  for (int number = 0; number < static_cast<int>(input.slices.size()); ++number) {
    const SequenceSlice& slice = input.slices[static_cast<std::size_t>(number)];
    const PagedKvView& view = slice.views[static_cast<std::size_t>(group)];
    add_segments(view, window, slice.first_position);
    first_segment_.push_back(static_cast<int>(segments_.size()));
    add_stores(view, slice, number);
    add_items(slice, number, layout.kv_heads);
    max_pages_ = std::max(max_pages_, static_cast<int>(view.pages.size()));
  }
}

std::span<const AttentionPlan::Segment> AttentionPlan::segments(int slice) const {
  const auto begin = static_cast<std::size_t>(first_segment_[static_cast<std::size_t>(slice)]);
  const auto end = static_cast<std::size_t>(first_segment_[static_cast<std::size_t>(slice) + 1]);
  return std::span(segments_).subspan(begin, end - begin);
}

void AttentionPlan::add_segments(const PagedKvView& view, int window, Position first_position) {
  const int pages = static_cast<int>(view.pages.size());
  const int pages_per_segment = kAttentionSegmentSlots / view.layout->page_tokens;
  int page = 0;
  if (window > 0) {  // pages that no query of this slice can see
    while (page + 1 < pages && view.pages[static_cast<std::size_t>(page) + 1].first_position <=
                                   first_position - window + 1) {
      ++page;
    }
  }
  while (page < pages) {
    const int number = view.first_page_number + page;
    const int limit = std::min(pages, page + pages_per_segment - number % pages_per_segment);
    const Position shift = view.pages[static_cast<std::size_t>(page)].rope_shift;
    int end = page + 1;
    while (end < limit && view.pages[static_cast<std::size_t>(end)].rope_shift == shift) ++end;
    segments_.push_back({page, end, shift});
    max_segment_pages_ = std::max(max_segment_pages_, end - page);
    page = end;
  }
}

void AttentionPlan::add_stores(const PagedKvView& view, const SequenceSlice& slice,
                               int slice_number) {
  int left = slice.rows;
  for (int page = static_cast<int>(view.pages.size()) - 1; left > 0; --page) {
    MEMDECAY_CHECK(page >= 0);
    const int filled = view.pages[static_cast<std::size_t>(page)].filled;
    const int tokens = std::min(filled, left);
    left -= tokens;
    if (tokens > 0)
      stores_.push_back({slice_number, page, filled - tokens, slice.first_row + left, tokens});
  }
}

void AttentionPlan::add_items(const SequenceSlice& slice, int slice_number, int kv_heads) {
  const int segments = first_segment_[static_cast<std::size_t>(slice_number) + 1] -
                       first_segment_[static_cast<std::size_t>(slice_number)];
  max_segments_ = std::max(max_segments_, segments);
  const bool split = slice.rows <= kMostSplitRows && segments > 1;
  const int block = split ? kMostSplitRows : kAttentionRowBlock;
  // Last rows first: they see the most slots, and the end of the phase is then made of short items.
  for (int offset = (slice.rows - 1) / block * block; offset >= 0; offset -= block) {
    const int first_row = slice.first_row + offset;
    const int rows = std::min(block, slice.rows - offset);
    const int row_block = first_row_block_.back() + offset / block;
    for (int head = 0; head < kv_heads; ++head) {
      if (!split) {
        items_.push_back({slice_number, head, first_row, rows, 0, segments, true, row_block, 0});
        continue;
      }
      merges_.push_back({slice_number, head, first_row, rows, segments, partial_slots_, row_block});
      for (int segment = 0; segment < segments; ++segment) {
        items_.push_back({slice_number, head, first_row, rows, segment, segment + 1, false,
                          row_block, partial_slots_++});
      }
    }
  }
  first_row_block_.push_back(first_row_block_.back() + (slice.rows + block - 1) / block);
}

}  // namespace memdecay
