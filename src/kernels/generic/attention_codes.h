// The two products of attention over pages of codes, and over pages of different forms in one tile.
//
// A number is fma(code, scale, minimum) in every path, and from there on the chains are those of
// attention_products.h: the same bits whether codes are read here or widened first.
//
// Pages are read in *chunks* of 32 slots (of V: runs of 32 dimensions), which is how 4-bit rows are
// packed. A step spans kVectors vectors: one chunk, several, or a part of one. `Codes` says which
// elements a vector of a step holds; they need not be consecutive.
// Included inside a target region.
#pragma once

#include "kernels/generic/attention_products.h"

namespace memdecay {
namespace {

inline constexpr int kChunk = 32;

/// fp16 numbers: no scale.
template <typename L>
struct HalfCodes {
  static constexpr int kBits = 16;
  static constexpr bool kScaled = false;
  static constexpr int chunk(int v) { return v * L::kWidth / kChunk; }
  static constexpr int element(int v) { return v * L::kWidth; }
  /// Vector v of a step; `codes` is the step's part of the chunk.
  static MEMDECAY_INLINE typename L::Floats load(const std::byte* codes, int v, const float*) {
    return L::load_half(reinterpret_cast<const std::uint16_t*>(codes + v * L::kWidth % kChunk * 2));
  }
};

template <typename L>
struct ByteCodes {
  static constexpr int kBits = 8;
  static constexpr bool kScaled = true;
  static constexpr int chunk(int v) { return v * L::kWidth / kChunk; }
  static constexpr int element(int v) { return v * L::kWidth; }
  static MEMDECAY_INLINE typename L::Floats load(const std::byte* codes, int v, const float* pair) {
    return L::fma(L::load_bytes(codes + v * L::kWidth % kChunk), L::set(pair[0]), L::set(pair[1]));
  }
};

/// Vectors 2i and 2i + 1 are the low and the high halves of the same kWidth bytes.
template <typename L>
struct NibbleCodes {
  static constexpr int kBits = 4;
  static constexpr bool kScaled = true;
  static constexpr int chunk(int v) { return v / 2 * L::kWidth / 16; }
  static constexpr int byte(int v) { return v / 2 * L::kWidth % 16; }
  static constexpr int element(int v) { return chunk(v) * kChunk + byte(v) + v % 2 * 16; }
  static MEMDECAY_INLINE typename L::Floats load(const std::byte* codes, int v, const float* pair) {
    return L::load_nibbles(codes + byte(v), v % 2 != 0, L::set(pair[0]), L::set(pair[1]));
  }
};

/// The last 16 elements of a row whose last run is that short.
template <typename L>
struct ShortNibbleCodes {
  static constexpr int kBits = 4;
  static constexpr bool kScaled = true;
  static constexpr int chunk(int) { return 0; }
  static constexpr int element(int v) { return v * L::kWidth; }
  static MEMDECAY_INLINE typename L::Floats load(const std::byte* codes, int v, const float* pair) {
    return L::load_short_nibbles(codes, v, L::set(pair[0]), L::set(pair[1]));
  }
};

/// Where a step of kVectors vectors begins.
struct StepPlace {
  int chunk = 0;
  int byte = 0;     ///< within the chunk
  int element = 0;  ///< of the tile (of V: of the row)
};

template <typename L, typename Codes, int kVectors>
constexpr StepPlace place_of_step(int step) {
  constexpr int kSpan = kVectors * L::kWidth;
  if constexpr (kSpan >= kChunk) {
    return {step * kSpan / kChunk, 0, step * kSpan};
  } else {
    constexpr int kParts = kChunk / kSpan;
    const int part = step % kParts;
    // Half a 4-bit chunk is half of its bytes: every second group of its elements.
    const int element = Codes::kBits == 4 ? part * kSpan / 2 : part * kSpan;
    return {step / kParts, part * kSpan * Codes::kBits / 8, step / kParts * kChunk + element};
  }
}

/// Cache lines of V to ask for while scores are taken, a line of each page in turn.
struct ValueLines {
  const std::byte* values[kMaxTilePages] = {};
  int pages_shift = 0;  ///< log2 of the number of pages
  int begin = 0, end = 0;

  MEMDECAY_INLINE void ask(int from, int to) const {
    const int mask = (1 << pages_shift) - 1;
    for (int line = from; line < (to < end ? to : end); ++line) {
      const std::byte* at = values[line & mask] + std::ptrdiff_t{line >> pages_shift} * 64;
      _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
    }
  }
};

/// The keys of one step.
struct CodedKeys {
  const std::byte* codes[kAttentionTileSlots / kChunk] = {};  ///< by chunk of the step
  const float* pairs[kAttentionTileSlots / kChunk] = {};      ///< [head_dim][scale, minimum]
  std::ptrdiff_t row_bytes = 0;
  const ValueLines* lines = nullptr;
};

/// Scores of kRows query rows against one step of kVectors vectors; `scores` is the step's first
/// element. REQUIRES: head_dim % 8 == 0.
template <typename L, typename Codes, int kRows, int kVectors>
MEMDECAY_NOINLINE void score_codes(const CodedKeys& keys, int head_dim, const float* q,
                                   float* scores) {
  constexpr int kChunks = Codes::chunk(kVectors - 1) + 1;
  constexpr int kDimsPerAsk = 8;
  const std::byte* codes[std::size_t{kChunks}];
  const float* pairs[std::size_t{kChunks}];
  MEMDECAY_UNROLL
  for (int c = 0; c < kChunks; ++c) {
    codes[c] = keys.codes[c];
    pairs[c] = keys.pairs[c];
  }
  const std::ptrdiff_t row_bytes = keys.row_bytes;
  const ValueLines& lines = *keys.lines;
  const int share = (lines.end - lines.begin) * kDimsPerAsk / head_dim + 1;
  int line = lines.begin;
  RegisterTile<L, kRows, kVectors> sums;
  sums.clear();
  for (int group = 0; group < head_dim; group += kDimsPerAsk, line += share) {
    lines.ask(line, line + share);
    for (int d = group; d < group + kDimsPerAsk; ++d) {
      sums.template add_product<kQueryStride>(q + d, [&](int v) {
        const int c = Codes::chunk(v);
        return Codes::load(codes[c] + d * row_bytes, v, pairs[c] + (Codes::kScaled ? 2 * d : 0));
      });
    }
  }
  MEMDECAY_UNROLL
  for (int r = 0; r < kRows; ++r) {
    MEMDECAY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      L::store(scores + r * kAttentionTileSlots + Codes::element(v), sums.at[r][v]);
    }
  }
}

/// How the value product reads pages of one form.
struct CodedValues {
  std::ptrdiff_t offset = 0;     ///< from a page's keys to its values
  std::ptrdiff_t row_bytes = 0;  ///< of a slot
  int runs = 0;                  ///< pairs of a slot
  const float* pairs = nullptr;  ///< [kAttentionTileSlots][runs][scale, minimum]
};

/// out = decay * out + weights * V for the dimensions of one step.
template <typename L, typename Codes, int kRows, int kVectors>
MEMDECAY_NOINLINE void add_values_of_codes(const AttentionTile& tile, const ValueProduct& product,
                                           const CodedValues& coded, const StepPlace& place) {
  RegisterTile<L, kRows, kVectors> sums;
  float* const out = product.out + place.element;
  MEMDECAY_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const typename L::Floats decay = L::set(product.decay[r]);
    MEMDECAY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sums.at[r][v] = L::mul(L::load(out + r * product.out_stride + Codes::element(v)), decay);
    }
  }
  const int prefetch_bytes = place.element == 0 ? product.prefetch_bytes : 0;
  for (int p = product.page_begin; p < product.page_end; ++p) {
    const SlotRange range = product.visible[p];
    const int first = p * tile.page_slots;
    const std::byte* codes = tile.keys[p] + coded.offset + range.begin * coded.row_bytes +
                             place.chunk * kChunk * Codes::kBits / 8 + place.byte;
    const float* pairs =
        coded.pairs + (std::ptrdiff_t{first + range.begin} * coded.runs + place.chunk) * 2;
    for (int slot = first + range.begin; slot < first + range.end; ++slot) {
      tile.prefetch_coded_next(slot, prefetch_bytes);
      sums.template add_product<kAttentionTileSlots>(product.weights + slot, [&](int v) {
        const int c = Codes::chunk(v);
        return Codes::load(codes + c * kChunk * Codes::kBits / 8, v, pairs + 2 * c);
      });
      codes += coded.row_bytes;
      pairs += 2 * coded.runs;
    }
  }
  MEMDECAY_UNROLL
  for (int r = 0; r < kRows; ++r) {
    MEMDECAY_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      L::store(out + r * product.out_stride + Codes::element(v), sums.at[r][v]);
    }
  }
}

/// Pairs of scale and minimum as floats; any number of them.
template <typename L>
void widen_pairs(const std::byte* pairs, int count, float* to) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(pairs);
  int i = 0;
  for (; i + L::kWidth <= 2 * count; i += L::kWidth) L::store(to + i, L::load_half(halves + i));
  for (; i < 2 * count; ++i) to[i] = half_to_float(halves[i]);
}

}  // namespace
}  // namespace memdecay
