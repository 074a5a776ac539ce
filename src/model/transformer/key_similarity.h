// How much a page's keys look like all others: the score of the `keydiff` baseline, which evicts
// what looks most alike (KeyDiff, Park et al. 2025).
//
// Per layer and kv head the direction of a sequence is the sum of its keys, each scaled to length
// 1; a token's similarity is the cosine between its key and that direction, a page's the mean over
// its tokens, layers and kv heads. Since the mean of cosines is a product of sums, a page is read
// once, when it is sealed: afterwards its own sum tells its similarity to any direction, also when
// the page has become codes or is gone. A key of length 0 has no direction and counts as cosine 0.
// Keys are taken as stored, after RoPE; of codes, as they decode.
//
// Pure functions, any thread, off the hot path: to read a page costs a few ns per key element, to
// judge one a multiplication per number of its sum.
#pragma once

#include <span>

#include "core/paged_kv.h"

namespace memdecay {

/// Floats of one sum: [layers][kv heads][head_dim].
std::size_t key_direction_size(const KvPageLayout& layout);

/// Adds the unit keys of the page's tokens to `sum`. REQUIRES: sum.size() == key_direction_size().
void add_key_directions(const KvPageLayout& layout, const KvPageRef& page, std::span<float> sum);

/// Scales the part of every layer and kv head to length 1, or leaves it at 0.
void scale_to_unit(const KvPageLayout& layout, std::span<const double> sum, std::span<float> unit);

/// Mean cosine of a page of `tokens` tokens, whose unit keys add up to `page_sum`, to the direction
/// `unit`: in [-1, 1]; 0 for no tokens.
float key_similarity(const KvPageLayout& layout, std::span<const float> page_sum, int tokens,
                     std::span<const float> unit);

/// The same for every page of a view, whose pages together are the sequence: [pages]. Reads each
/// page once and holds one sum a page meanwhile.
void key_similarities(const PagedKvView& view, std::span<float> out);

}  // namespace memdecay
