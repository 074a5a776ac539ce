// The plain view of paged keys and values that kv makes and kernels read: addresses, strides, fill
// counts.
//
// A page is one contiguous slab that holds `page_tokens` slots of every layer of its layer group:
//
//   page = [layer][kv head][ K | V ]      K = [head_dim][page_tokens]  (token-minor: scores need no
//   horizontal sum)
//                                         V = [page_tokens][head_dim]  (row-major)
//
// Element type by KvFormat: fp16, fp32, or codes of 8 or 4 bits with scales; pages of one sequence
// may differ in it. All offsets follow from KvPageLayout, so the geometry is decided in this one
// file. Keys are stored after RoPE and keep that rotation when gaps are closed (rope_shift). The
// view owns nothing and is valid until the sequence it came from changes; any number of threads may
// read it. Writers touch only slots that no reader looks at.
//
// Invariants: 1 <= filled <= page_tokens for every page but the last, which may be 0; positions
// grow from page to page, with gaps where pages were evicted. Pages in the middle may be partly
// filled: they were sealed. A page that is written is in the group's own form and has not moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/id.h"

namespace memdecay {

enum class KvFormat : std::uint8_t {
  kF16,   ///< IEEE half precision: the default
  kF32,   ///< single precision: --precision exact
  kInt8,  ///< 8-bit codes for K and V
  kK8V4,  ///< 8-bit codes for K, 4-bit for V
  kInt4,  ///< 4-bit codes for both
};

constexpr bool is_quantized(KvFormat format) {
  return format >= KvFormat::kInt8;
}
constexpr int key_bits(KvFormat format) {
  constexpr int kBits[] = {16, 32, 8, 8, 4};
  return kBits[static_cast<int>(format)];
}
constexpr int value_bits(KvFormat format) {
  constexpr int kBits[] = {16, 32, 8, 4, 4};
  return kBits[static_cast<int>(format)];
}
constexpr const char* kv_format_name(KvFormat format) {
  constexpr const char* kNames[] = {"fp16", "fp32", "int8", "k8v4", "int4"};
  return kNames[static_cast<int>(format)];
}
/// Bytes of one K or V element. REQUIRES: not quantized.
constexpr std::size_t kv_element_bytes(KvFormat format) {
  return format == KvFormat::kF16 ? 2 : 4;
}

/// A quantized value is code * scale + minimum, code an unsigned integer, scale and minimum fp16. K
/// has one scale and one minimum per channel of the page, V one per slot and run of this many
/// dimensions (the last may be shorter).
inline constexpr int kValueScaleRun = 32;

/// Codes are packed along the axis that attention sums over, K's channels and V's slots: a word of
/// 32 bits holds that many neighbours of it for one column (K: a slot, V: a dimension). A matrix is
/// words [depth / elements of a word][columns], little-endian; the last words may be partly used.
constexpr int code_words(int bits, int depth) {
  return (depth * bits + 31) / 32;
}

/// Where a code lies. Neighbours 2i and 2i + 1 of a word stand 16 bits apart, so that one shift and
/// one mask make the word a pair of 16-bit numbers, which is what integer products multiply.
struct CodePlace {
  std::size_t byte = 0;  ///< from the matrix's start
  int shift = 0;         ///< 0, or 4 for the high half of a byte
};
constexpr CodePlace code_place(int bits, int depth, int column, int columns) {
  const int elements = 32 / bits;
  const int element = depth % elements;
  const int bit = element % 2 * 16 + element / 2 * bits;
  const std::size_t word =
      static_cast<std::size_t>(depth / elements) * static_cast<std::size_t>(columns) +
      static_cast<std::size_t>(column);
  return {4 * word + static_cast<std::size_t>(bit / 8), bit % 8};
}

/// The shape of one layer group's pages in one form. All counts > 0; page_tokens is 16, 32 or 64.
///
/// Inside a quantized head: K = codes of depth head_dim and columns page_tokens, scales [head_dim],
/// minima [head_dim]; then V = codes of depth page_tokens and columns head_dim, and for each run
/// scales [page_tokens], minima [page_tokens].
struct KvPageLayout {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int page_tokens = 32;
  KvFormat format = KvFormat::kF16;

  /// The same page in another form.
  constexpr KvPageLayout in(KvFormat other) const {
    return {layers, kv_heads, head_dim, page_tokens, other};
  }
  constexpr int value_runs() const { return (head_dim + kValueScaleRun - 1) / kValueScaleRun; }
  /// Bytes of K's codes (or floats) of one head of one layer in one page.
  constexpr std::size_t key_code_bytes() const {
    if (!is_quantized(format)) return slots() * kv_element_bytes(format);
    return 4 * size(code_words(key_bits(format), head_dim)) * size(page_tokens);
  }
  constexpr std::size_t key_bytes() const {
    return key_code_bytes() + (is_quantized(format) ? 4 * size(head_dim) : 0);
  }
  constexpr std::size_t value_code_bytes() const {
    if (!is_quantized(format)) return slots() * kv_element_bytes(format);
    return 4 * size(code_words(value_bits(format), page_tokens)) * size(head_dim);
  }
  constexpr std::size_t value_bytes() const {
    return value_code_bytes() +
           (is_quantized(format) ? 4 * size(page_tokens) * size(value_runs()) : 0);
  }
  /// K and V of one head of one layer; heads start at multiples of 64 bytes in quantized forms.
  constexpr std::size_t head_bytes() const {
    const std::size_t bytes = key_bytes() + value_bytes();
    return is_quantized(format) ? (bytes + 63) / 64 * 64 : bytes;
  }
  constexpr std::size_t layer_bytes() const { return size(kv_heads) * head_bytes(); }
  constexpr std::size_t page_bytes() const { return size(layers) * layer_bytes(); }
  /// From a page's base to the K of (layer, head), both counted within the group; V follows
  /// key_bytes() later.
  constexpr std::size_t head_offset(int layer, int head) const {
    return size(layer) * layer_bytes() + size(head) * head_bytes();
  }
  friend constexpr bool operator==(const KvPageLayout&, const KvPageLayout&) = default;

 private:
  static constexpr std::size_t size(int n) { return static_cast<std::size_t>(n); }
  constexpr std::size_t slots() const { return size(head_dim) * size(page_tokens); }
};

/// One page of a sequence as the kernels see it.
struct KvPageRef {
  std::byte* base = nullptr;         ///< start of the page's slab
  Position first_position = 0;       ///< of slot 0; slot s holds first_position + s or, in a packed
                                     ///< page, a later position
  std::int32_t filled = 0;           ///< slots that hold a token
  KvFormat format = KvFormat::kF16;  ///< the page's own form
  /// The page's virtual place minus the place its keys are rotated by: 0 until gaps before the page
  /// are closed, then below. What a query sees goes by first_position, whatever stands here.
  Position rope_shift = 0;
  /// Positions closed before the page: its virtual place is first_position - closed_before.
  Position closed_before = 0;
};

/// A sequence's pages of one layer group, oldest first.
struct PagedKvView {
  const KvPageLayout* layout = nullptr;  ///< of pages in the group's own form
  std::span<const KvPageRef> pages;
  /// Number of pages[0] counted from the sequence's first page: > 0 where a sliding window let old
  /// pages go. Kernels cut their tiles at absolute page numbers, so results do not depend on how
  /// many old pages are still there. Evicted pages are not counted.
  std::int32_t first_page_number = 0;
};

}  // namespace memdecay
