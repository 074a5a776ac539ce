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

struct SequenceSlice {
  int first_row = 0;
  int rows = 0;
  Position first_position = 0;         ///< row first_row + i has position first_position + i
  std::span<const PagedKvView> views;  ///< one per layer group
  /// Optional out, one per layer group, each [pages of the view]: attention mass that each page got
  /// from this slice's queries, summed over rows, heads and the group's layers (the total is rows *
  /// heads * layers of the group).
  std::span<float* const> page_mass;
};

struct ForwardInput {
  std::span<const TokenId> tokens;        ///< [rows], each below the vocabulary's size
  std::span<const SequenceSlice> slices;  ///< cover the rows in order
};

}  // namespace memdecay
