// AttentionPlan: the attention work of one layer group in one forward pass, cut into items that
// threads can take.
//
// An item is (slice, kv head, row block, run of segments). Slices of few rows (decode) are cut
// along the segments, so that a long context is shared by all threads; longer slices (prefill) are
// cut along the rows and walk all their segments in one item. The cut depends on the batch's shape,
// never on the number of threads, and segments are merged in order, so the result's bits depend on
// neither. A segment ends where rope_shift changes too: its pages are read with one query.
//
// Also lists where each slice's new keys and values go. Built once per pass and group (by one
// thread), read by all.
#pragma once

#include <vector>

#include "kernels/attention.h"
#include "model/transformer/forward_input.h"

namespace memdecay {

/// Rows of one prefill item: with its query heads 16 * group rows share each pass over a page.
inline constexpr int kAttentionRowBlock = 16;

class AttentionPlan {
 public:
  /// Slices of at most this many rows are cut along their segments.
  static constexpr int kMostSplitRows = 4;

  struct Segment {
    int page_begin = 0, page_end = 0;  ///< indices into the view's pages
    Position rope_shift = 0;           ///< of all of them
  };
  /// Rows [first_row, first_row + rows) of the batch, over segments [segment_begin, segment_end) of
  /// their slice.
  struct Item {
    int slice = 0;
    int kv_head = 0;
    int first_row = 0, rows = 0;
    int segment_begin = 0, segment_end = 0;
    bool whole = false;    ///< covers all segments of its rows, so its taker merges as well
    int row_block = 0;     ///< number of its rows' block over all slices
    int partial_slot = 0;  ///< number of a split item's partial result
  };
  /// Split rows of one kv head that must be merged after all items are done.
  struct Merge {
    int slice = 0, kv_head = 0, first_row = 0, rows = 0, segments = 0;
    int first_partial_slot = 0;
    int row_block = 0;
  };
  /// Consecutive rows that go to consecutive slots of one page.
  struct Store {
    int slice = 0;
    int page = 0;  ///< index into the view's pages
    int first_slot = 0, first_row = 0, tokens = 0;
  };

  /// Plans for group number `group` of every slice.
  void build(const ForwardInput& input, int group, const KvPageLayout& layout, int window);

  const std::vector<Item>& items() const { return items_; }
  const std::vector<Merge>& merges() const { return merges_; }
  const std::vector<Store>& stores() const { return stores_; }
  std::span<const Segment> segments(int slice) const;
  int partial_slots() const { return partial_slots_; }
  /// Row blocks of slice s are numbered [first_row_block(s), first_row_block(s + 1)).
  int first_row_block(int slice) const { return first_row_block_[static_cast<std::size_t>(slice)]; }
  int row_blocks() const { return first_row_block_.back(); }
  int max_segments() const { return max_segments_; }
  int max_segment_pages() const { return max_segment_pages_; }
  /// Largest number of pages in a view, for page mass.
  int max_pages() const { return max_pages_; }

 private:
  void add_segments(const PagedKvView& view, int window, Position first_position);
  void add_stores(const PagedKvView& view, const SequenceSlice& slice, int slice_number);
  void add_items(const SequenceSlice& slice, int slice_number, int kv_heads);

  std::vector<Item> items_;
  std::vector<Merge> merges_;
  std::vector<Store> stores_;
  std::vector<Segment> segments_;
  std::vector<int> first_segment_;    ///< [slices + 1]
  std::vector<int> first_row_block_;  ///< [slices + 1]
  int partial_slots_ = 0;
  int max_segments_ = 0;
  int max_segment_pages_ = 0;
  int max_pages_ = 0;
};

}  // namespace memdecay
