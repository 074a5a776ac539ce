// The plain view of paged keys and values that kv makes and kernels read: addresses, strides, fill
// counts.
//
// A page is one contiguous slab that holds `page_tokens` slots of every layer of its layer group:
//
//   page = [layer][kv head][ K | V ]      K = [head_dim][page_tokens]  (token-minor: scores need no
//   horizontal sum)
//                                         V = [page_tokens][head_dim]  (row-major)
//
// Element type by KvFormat: kF16 (2 bytes) or kF32 (4 bytes). All offsets follow from KvPageLayout,
// so the geometry is decided in this one file. Keys are stored after RoPE. The view owns nothing
// and is valid until the sequence it came from changes; any number of threads may read it. Writers
// touch only slots that no reader looks at.
//
// Invariants: 1 <= filled <= page_tokens for every page but the last, which may be 0; positions
// grow from page to page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/id.h"

namespace memdecay {

enum class KvFormat : std::uint8_t {
  kF16,  ///< IEEE half precision: the default
  kF32,  ///< single precision: --precision exact
};

constexpr std::size_t kv_element_bytes(KvFormat format) {
  return format == KvFormat::kF16 ? 2 : 4;
}

/// The shape of one layer group's pages. All counts > 0; page_tokens is 16, 32 or 64.
struct KvPageLayout {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int page_tokens = 32;
  KvFormat format = KvFormat::kF16;

  /// Bytes of K (or of V) of one head of one layer in one page.
  constexpr std::size_t half_head_bytes() const {
    return static_cast<std::size_t>(head_dim) * static_cast<std::size_t>(page_tokens) *
           kv_element_bytes(format);
  }
  constexpr std::size_t head_bytes() const { return 2 * half_head_bytes(); }
  constexpr std::size_t layer_bytes() const {
    return static_cast<std::size_t>(kv_heads) * head_bytes();
  }
  constexpr std::size_t page_bytes() const {
    return static_cast<std::size_t>(layers) * layer_bytes();
  }
  /// From a page's base to the K of (layer, head), both counted within the group; V follows
  /// half_head_bytes() later.
  constexpr std::size_t head_offset(int layer, int head) const {
    return static_cast<std::size_t>(layer) * layer_bytes() +
           static_cast<std::size_t>(head) * head_bytes();
  }
  friend constexpr bool operator==(const KvPageLayout&, const KvPageLayout&) = default;
};

/// One page of a sequence as the kernels see it.
struct KvPageRef {
  std::byte* base = nullptr;    ///< start of the page's slab
  Position first_position = 0;  ///< position of slot 0; slot s has position first_position + s
  std::int32_t filled = 0;      ///< slots that hold a token
};

/// A sequence's pages of one layer group, oldest first.
struct PagedKvView {
  const KvPageLayout* layout = nullptr;
  std::span<const KvPageRef> pages;
  /// Number of pages[0] counted from the sequence's first page: > 0 where a sliding window let old
  /// pages go. Kernels cut their tiles at absolute page numbers, so results do not depend on how
  /// many old pages are still there.
  std::int32_t first_page_number = 0;
};

}  // namespace memdecay
