// The one product of attention over codes: sums of code * factor, a code of 4 or 8 bits, a factor
// of 16.
//
// Scores of a quantized page and what its values add to an output are both
//     out[row][column] = sum over depth of code[depth][column] * factor[row][depth]  * step[row]
//                        + (base[row], or decay[row] * what out held + base[row])
// with depth = channels and columns = slots for K, depth = slots and columns = dimensions for V.
// The sum is exact in 32 bits, whatever goes in: see kLargestSum. It is turned into a float and
// meets step and addend in one fused multiply-add, so register tiles never change a bit. Where
// factors, steps and bases come from: coded_tile.h. Words of codes: core/paged_kv.h.
// Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_tile.h"
#include "kernels/generic/attention/line_queue.h"

namespace memdecay {
namespace {

/// No sum of absolute products is larger, so no order of adding overflows. A code has 8 bits at
/// most. A factor is what store_factors() packs with saturation: at least -32768 (which a NaN
/// gives; finite numbers stay within 32767, since |q| <= Q, scale <= S and weight <= P but for
/// rounding, 2^-20 where half a step is 2^-16). Depth is the channels of a head (K) or the slots of
/// a tile (V). On the way, vpdpwssd adds without
/// saturation, and vpmaddwd's pairs are two such products.
inline constexpr std::int64_t kLargestSum =
    std::int64_t{255} * 32768 * std::max(kMaxFastHeadDim, kAttentionTileSlots);
static_assert(kLargestSum <= std::numeric_limits<std::int32_t>::max());

/// Up to two blocks of 2 vectors of columns; the depth may go on over several pages.
struct CodeProduct {
  static constexpr int kMostBlocks = 2;

  int blocks = 0;
  int pages = 1;
  /// Of the block's first column, page by page.
  const std::byte* words[kMostBlocks][kMaxTilePages] = {};
  const std::int16_t* factors[kMostBlocks] = {};  ///< [rows][factor_stride]
  const float* steps[kMostBlocks] = {};           ///< [rows]
  const float* bases[kMostBlocks] = {};           ///< [rows]
  const float* decay = nullptr;                   ///< [rows]: factor of what out holds; null: 0
  float* out[kMostBlocks] = {};                   ///< [rows][out_stride]
  bool first_vector_only[kMostBlocks] = {};       ///< only half a block of columns is there
  int bits = 0;                                   ///< of a code
  int words_of_depth = 0;                         ///< in one page
  std::ptrdiff_t word_stride = 0;                 ///< bytes from one word of depth to the next
  std::ptrdiff_t factor_stride = 0;
  std::ptrdiff_t out_stride = 0;
};

/// Adds the products of one word of depth, pair by pair, of vectors [kFirst, kFirst + kVectors) of
/// columns.
template <typename L, int kBits, int kRows, int kFirst, int kVectors, int kPair = 0>
MEMDECAY_INLINE void add_pairs(typename L::Words (&sums)[std::size_t{kRows}][2],
                               const typename L::Words (&words)[std::size_t{kVectors}],
                               const std::int16_t* factors, std::ptrdiff_t stride) {
  typename L::Words pairs[std::size_t{kVectors}];
  MEMDECAY_UNROLL
  for (int v = 0; v < kVectors; ++v) pairs[v] = L::template code_pair<kBits, kPair>(words[v]);
  MEMDECAY_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const typename L::Words factor = L::set_pair(factors + r * stride + 2 * kPair);
    MEMDECAY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums[r][kFirst + v] = L::add_pair_products(sums[r][kFirst + v], pairs[v], factor);
    }
  }
  if constexpr ((kPair + 1) * 2 * kBits < 32) {
    add_pairs<L, kBits, kRows, kFirst, kVectors, kPair + 1>(sums, words, factors, stride);
  }
}

template <typename L, int kBits, int kRows>
MEMDECAY_INLINE void add_word(typename L::Words (&sums)[std::size_t{kRows}][2],
                              const std::byte* words, const std::int16_t* factors,
                              std::ptrdiff_t stride) {
  const std::byte* right = words + 4 * L::kWidth;
  if constexpr (2 * kRows <= L::kMostSums) {
    add_pairs<L, kBits, kRows, 0, 2>(sums, {L::load_words(words), L::load_words(right)}, factors,
                                     stride);
  } else {
    // One after the other: registers are short.
    add_pairs<L, kBits, kRows, 0, 1>(sums, {L::load_words(words)}, factors, stride);
    add_pairs<L, kBits, kRows, 1, 1>(sums, {L::load_words(right)}, factors, stride);
  }
}

template <typename L, int kRows>
MEMDECAY_INLINE void store_block(const typename L::Words (&sums)[std::size_t{kRows}][2],
                                 const CodeProduct& product, int block) {
  const float* bases = product.bases[block];
  const int vectors = product.first_vector_only[block] ? 1 : 2;
  MEMDECAY_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const typename L::Floats step = L::set(product.steps[block][r]);
    float* out = product.out[block] + r * product.out_stride;
    MEMDECAY_UNROLL
    for (int v = 0; v < 2; ++v) {
      if (v >= vectors) continue;
      typename L::Floats addend = L::set(bases[r]);
      if (product.decay != nullptr) {
        addend = L::fma(L::load(out + v * L::kWidth), L::set(product.decay[r]), addend);
      }
      L::store(out + v * L::kWidth, L::fma(L::to_floats(sums[r][v]), step, addend));
    }
  }
}

template <typename L, int kBits, int kRows, int kBlocks>
MEMDECAY_NOINLINE void multiply_codes(const CodeProduct& product, LineQueue& queue) {
  typename L::Words sums[std::size_t{kBlocks}][std::size_t{kRows}][2];
  MEMDECAY_UNROLL
  for (int b = 0; b < kBlocks; ++b) {
    MEMDECAY_UNROLL
    for (int r = 0; r < kRows; ++r) sums[b][r][0] = sums[b][r][1] = L::zero_words();
  }
  const std::ptrdiff_t factor_stride = product.factor_stride;
  const std::int16_t* factors[std::size_t{kBlocks}];
  MEMDECAY_UNROLL
  for (int b = 0; b < kBlocks; ++b) factors[b] = product.factors[b];
  LineQueue lines = queue;
  for (int page = 0; page < product.pages; ++page) {
    const std::byte* words[std::size_t{kBlocks}];
    MEMDECAY_UNROLL
    for (int b = 0; b < kBlocks; ++b) words[b] = product.words[b][page];
    for (int word = 0; word < product.words_of_depth; ++word) {
      lines.step();
      MEMDECAY_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        add_word<L, kBits, kRows>(sums[b], words[b], factors[b], factor_stride);
        words[b] += product.word_stride;
        factors[b] += 32 / kBits;
      }
    }
  }
  queue = lines;
  MEMDECAY_UNROLL
  for (int b = 0; b < kBlocks; ++b) store_block<L, kRows>(sums[b], product, b);
}

}  // namespace
}  // namespace memdecay
