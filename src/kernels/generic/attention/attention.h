// The two entries of the kernel table that attend: attention() and the scratch it needs.
//
// Head sizes above kMaxFastHeadDim are rare enough for the scalar kernel. Included inside a target
// region.
#pragma once

#include "kernels/generic/attention/attention_item.h"

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

}  // namespace
}  // namespace memdecay
