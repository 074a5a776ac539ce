// merge_attention: joining the segments of a row.
//
// Included inside a target region.
#pragma once

#include "kernels/generic/exp2.h"

namespace memdecay {
namespace {

/// Segments in rising order; those where nothing was visible leave no trace.
template <typename L>
void merge_head(const MergeAttentionArgs& args, int head) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const auto segment_max = [&](int s) { return args.max[s * args.stat_stride + head]; };
  const auto weight = [&](int s, float max) {
    alignas(64) float lanes[L::kWidth];
    L::store(lanes, exp2_nonpositive<L>(L::set(segment_max(s) - max)));
    return segment_max(s) == kMinusInfinity ? 0.0f : lanes[0];
  };
  float max = kMinusInfinity;
  for (int s = 0; s < args.segments; ++s) max = std::max(max, segment_max(s));
  float sum = 0;
  for (int s = 0; s < args.segments; ++s) {
    sum += weight(s, max) * args.sum[s * args.stat_stride + head];
  }
  float* out = args.out + static_cast<std::ptrdiff_t>(head) * args.head_dim;
  std::fill_n(out, args.head_dim, 0.0f);
  for (int s = 0; s < args.segments; ++s) {
    const float scale = sum == 0.0f ? 0.0f : weight(s, max) / sum;
    if (args.segment_scale != nullptr) args.segment_scale[s * args.group + head] = scale;
    if (scale == 0.0f) continue;
    const float* partial =
        args.partial + s * args.out_stride + static_cast<std::ptrdiff_t>(head) * args.head_dim;
    int d = 0;
    for (; d + L::kWidth <= args.head_dim; d += L::kWidth) {
      L::store(out + d, L::fma(L::set(scale), L::load(partial + d), L::load(out + d)));
    }
    for (; d < args.head_dim; ++d) out[d] = __builtin_fmaf(scale, partial[d], out[d]);
  }
}

template <typename L>
void merge_attention(const MergeAttentionArgs& args) {
  for (int head = 0; head < args.group; ++head) merge_head<L>(args, head);
}

}  // namespace
}  // namespace memdecay
