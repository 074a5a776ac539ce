// Arguments of the attention kernels over paged keys and values.
//
// One call handles an *item*: `rows` consecutive query tokens of one sequence (1 in decode), the
// `group` query heads that share one kv head, and one *segment* of the sequence's pages. It leaves
// partial results; merge_attention joins the segments of a row in order. A slot is visible to a
// query at position P when
//     slot < page.filled  and  position(slot) <= P  and  (window == 0 or position(slot) > P -
//     window).
//
// Scores are q . k in fp32 (q already carries 1/sqrt(head_dim) * log2(e), so softmax is in powers
// of two). Softmax runs per *tile*: kAttentionTileSlots slots, that is the pages whose absolute
// number / pages_per_tile is equal. Within a tile slots are accumulated in order. A tile with no
// visible slot changes nothing; invisible slots of a visible tile weigh exactly 0 (their K and V
// must be finite: pages are zeroed when they are allocated).
//
// Pages may differ in form. Over quantized pages scores and outputs are sums of codes times 16-bit
// factors, which hold the query or the weight and the codes' scales: exact sums, a relative error
// of some 1e-4 in what comes out, and the same bits in both vector tables. The scalar table takes
// them as the real numbers that they stand for. See generic/attention/coded_tile.h.
//
// Determinism: a row's result depends on its q, its position and the visible slots only: not on how
// many rows share the call, on where pages lie in memory, or on how long prefixes were chunked.
// Decode equals prefill bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/paged_kv.h"

namespace memdecay {

inline constexpr int kAttentionTileSlots = 128;
/// Segments are cut at absolute slot numbers that are multiples of this, whatever the number of
/// threads.
inline constexpr int kAttentionSegmentSlots = 1024;

struct AttentionArgs {
  const KvPageLayout* layout = nullptr;  ///< the geometry; each page says its own form
  int layer = 0;                         ///< within the group, as in KvPageLayout::head_offset
  int kv_head = 0;
  const KvPageRef* pages = nullptr;  ///< the segment's pages
  int page_count = 0;
  int first_page_number = 0;  ///< absolute number of pages[0]
  int window = 0;  ///< 0: all earlier tokens; n: the last n tokens, the query's own included

  const float* q = nullptr;  ///< [rows][group][head_dim], each row q_stride floats after the last
  std::ptrdiff_t q_stride = 0;
  const Position* positions = nullptr;  ///< [rows], ascending
  int rows = 0;
  int group = 0;  ///< query heads per kv head, 1..8 fast, more allowed (split by the kernel)

  float* max =
      nullptr;  ///< out [rows][group]: maximum score (log2 units); -inf where nothing was visible
  float* sum = nullptr;  ///< out [rows][group]: sum of 2^(score - max)
  float* out = nullptr;  ///< out [rows][group][head_dim]: sum of 2^(score - max) * v
  /// Optional out [page_count][rows][group]: each page's part of `sum`, relative to the final `max`
  /// of this item.
  float* page_sum = nullptr;
  std::byte* scratch = nullptr;  ///< KernelTable::attention_scratch_bytes bytes of this thread's
                                 ///< own, 64-byte aligned
};

/// Joins the segments of one (row, kv head): `group` heads at once.
struct MergeAttentionArgs {
  int segments = 0;
  int group = 0;
  int head_dim = 0;
  /// Segment s of this row starts at max + s * stat_stride, sum + s * stat_stride, partial + s *
  /// out_stride.
  const float* max = nullptr;
  const float* sum = nullptr;
  const float* partial = nullptr;
  std::ptrdiff_t stat_stride = 0;
  std::ptrdiff_t out_stride = 0;
  float* out = nullptr;  ///< [group][head_dim], normalized
  /// Optional out [segments][group]: 2^(max_s - max) / sum, the factor that turns page_sum into
  /// attention mass.
  float* segment_scale = nullptr;
};

/// Writes the keys and values of consecutive slots of one page, one kv head, converting to the
/// page's format: fp16 or fp32, since a quantized page is never written slot by slot.
struct StoreKvArgs {
  const KvPageLayout* layout = nullptr;
  std::byte* head = nullptr;  ///< page base + head_offset
  int first_slot = 0;
  int tokens = 0;
  const float* k = nullptr;  ///< [tokens][k_stride], head_dim values each
  const float* v = nullptr;
  std::ptrdiff_t k_stride = 0;
  std::ptrdiff_t v_stride = 0;
};

}  // namespace memdecay
