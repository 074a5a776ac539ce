// What one forward pass computes: some tokens of some sequences, whose pages already have room for
// them.
//
// Rows are the tokens of the batch. A slice is a run of rows that are consecutive tokens of one
// sequence; decode has one row a slice, prefill many, and a batch may mix both. Pages are written
// by the pass itself: each view must already count the slice's tokens in `filled`, as the last
// slots of its last pages, in pages that nobody else shares.
#pragma once

#include <span>

#include "core/id.h"
#include "core/paged_kv.h"

namespace memdecay {

/// What the attention of one query says about a page, over the probed heads.
struct PageAttention {
  /// Deletion error of a head: how much its output changes, relative to the output's own length,
  /// when the page is not there. At most kMaxDeletionError.
  float mean_error = 0;
  float max_error = 0;
  float mean_mass = 0;  ///< share of a head's attention; sums to 1 over the pages
};

/// Asks for the evidence of one row of a slice. Only layers without a window are probed, and of
/// those only every `stride`-th in one pass: counted from 0, layer n where n % stride == phase. A
/// caller that moves the phase with each step sees every layer once in `stride` steps, at the same
/// cost a step where stride divides their number.
struct PageProbe {
  int row = -1;  ///< within the slice; -1 for its last
  int stride = 1;
  int phase = 0;                   ///< 0 <= phase < stride
  std::span<PageAttention> pages;  ///< out, one per page of the view of the group without a window
  /// Out: query heads over all probed layers; 0 where the phase met no layer, and then the evidence
  /// is zero and says nothing. Passes join exactly: means by heads, maxima by their maximum.
  int heads = 0;
};

/// The cap of the deletion error, and its value where it has no meaning: a page that got all
/// attention leaves no output to compare with. 1 is a change as large as the output, so whatever
/// lies up here is ruinous alike.
inline constexpr float kMaxDeletionError = 16.0F;

struct SequenceSlice {
  int first_row = 0;
  int rows = 0;
  Position first_position = 0;  ///< row first_row + i has position first_position + i
  /// Positions that were closed before the slice: its rows are rotated by position - rope_offset,
  /// and so are keys of pages that have rope_shift 0 from here on. Layers with a window, which have
  /// no gaps, rotate by the position itself.
  Position rope_offset = 0;
  std::span<const PagedKvView> views;  ///< one per layer group
  /// Optional out, one per layer group, each [pages of the view]: attention mass that each page got
  /// from this slice's queries, summed over rows, heads and the group's layers (the total is rows *
  /// heads * layers of the group).
  std::span<float* const> page_mass;
  int mass_from_row = 0;       ///< rows of the slice before this one do not count there
  PageProbe* probe = nullptr;  ///< optional; changes no bit of the pass's results
};

struct ForwardInput {
  std::span<const TokenId> tokens;        ///< [rows], each below the vocabulary's size
  std::span<const SequenceSlice> slices;  ///< cover the rows in order
};

}  // namespace memdecay
