// The kernel table's entries for attention.
//
// Head sizes above kMaxFastHeadDim are rare enough for the scalar kernel. Included inside a target
// region.
#pragma once

#include "kernels/generic/attention/attention_item.h"
#include "kernels/generic/attention/merge_attention.h"
#include "kernels/generic/attention/store_kv.h"

namespace memdecay {
namespace {

template <typename L>
std::size_t attention_scratch_bytes(const KvPageLayout& layout, int rows, int group) {
  if (layout.head_dim > kMaxFastHeadDim) {
    return scalar_kernels().attention_scratch_bytes(layout, rows, group);
  }
  return AttentionScratch<L>(nullptr, layout, rows * group).bytes;
}

template <typename L>
void attention(const AttentionArgs& args) {
  MEMDECAY_CHECK(args.page_count * args.layout->page_tokens <= kAttentionSegmentSlots);
  if (args.layout->head_dim > kMaxFastHeadDim) {
    scalar_kernels().attention(args);
    return;
  }
  AttentionItem<L>(args).run();
}

template <typename L>
void fill_attention(KernelTable& table) {
  table.attention_scratch_bytes = attention_scratch_bytes<L>;
  table.attention = attention<L>;
  table.merge_attention = merge_attention<L>;
  table.store_kv = store_kv;
}

}  // namespace
}  // namespace memdecay
