// PagedKvFixture: keys and values in pages of random addresses, and the double truth of attention
// over them. For tests and benchmarks only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/aligned_bytes.h"
#include "kernels/kernel_table.h"
#include "quant/half.h"
#include "quant/kv_page_codec.h"

namespace memdecay {

/// One sequence. Pages of a quantized form are encoded from fp16 numbers.
class PagedKvFixture {
 public:
  PagedKvFixture(int head_dim, int page_tokens, KvFormat format, int tokens, unsigned seed,
                 float amplitude = 1.0f)
      : PagedKvFixture({1, 1, head_dim, page_tokens, format}, tokens, seed, amplitude) {}

  PagedKvFixture(const KvPageLayout& layout, int tokens, unsigned seed, float amplitude = 1.0f)
      : layout_(is_quantized(layout.format) ? layout.in(KvFormat::kF16) : layout),
        page_count_((tokens + layout.page_tokens - 1) / layout.page_tokens),
        stride_(layout.page_bytes()),
        pool_(static_cast<std::size_t>(page_count_ + 1) * stride_),
        random_(seed) {
    std::vector<int> order(static_cast<std::size_t>(page_count_));
    for (int i = 0; i < page_count_; ++i) order[static_cast<std::size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), random_);
    for (int p = 0; p < page_count_; ++p) {
      KvPageRef ref;
      ref.base =
          pool_.data() + static_cast<std::size_t>(order[static_cast<std::size_t>(p)]) * stride_;
      ref.first_position = p * layout.page_tokens;
      ref.filled = std::min(layout.page_tokens, tokens - p * layout.page_tokens);
      ref.format = layout.format;
      pages_.push_back(ref);
      fill(ref, amplitude);
    }
  }

  const KvPageLayout& layout() const { return layout_; }
  std::vector<KvPageRef>& pages() { return pages_; }
  int page_count() const { return page_count_; }

  /// Rewrites a page in another form. REQUIRES: a form no larger than the first one.
  void convert(int page, KvFormat format) {
    KvPageRef& ref = pages_[static_cast<std::size_t>(page)];
    const KvPageLayout to = layout_.in(format);
    std::vector<std::byte> bytes(to.page_bytes());
    // All slots, filled or not: a page that was cut back holds old codes.
    convert_kv_page(layout_.in(ref.format), ref.base, to, bytes.data(), layout_.page_tokens);
    std::memcpy(ref.base, bytes.data(), bytes.size());
    ref.format = format;
  }

  std::vector<float> random_floats(std::size_t n, float amplitude) {
    std::uniform_real_distribution<float> uniform(-amplitude, amplitude);
    std::vector<float> values(n);
    for (float& value : values) value = uniform(random_);
    return values;
  }

 private:
  void fill(const KvPageRef& ref, float amplitude) {
    // All slots get numbers, filled or not: recycled pages hold old ones.
    const std::size_t n = layout_.page_bytes() / kv_element_bytes(layout_.format);
    const std::vector<float> values = random_floats(n, amplitude);
    std::vector<std::byte> bytes(layout_.page_bytes());
    for (std::size_t i = 0; i < n; ++i) {
      if (layout_.format == KvFormat::kF32) {
        reinterpret_cast<float*>(bytes.data())[i] = values[i];
      } else {
        reinterpret_cast<std::uint16_t*>(bytes.data())[i] = float_to_half(values[i]);
      }
    }
    convert_kv_page(layout_, bytes.data(), layout_.in(ref.format), ref.base, layout_.page_tokens);
  }

  KvPageLayout layout_;  ///< of the group: fp16 where pages are quantized
  int page_count_;
  std::size_t stride_;
  AlignedBytes pool_;
  std::vector<KvPageRef> pages_;
  std::mt19937 random_;
};

/// Segments, merged: attention of `rows` rows as the engine calls it.
struct AttentionResult {
  std::vector<float> out;       ///< [rows][group][head_dim]
  std::vector<float> mass;      ///< [page][rows][group]
  std::vector<float> max, sum;  ///< [segment][rows][group]
};

struct AttentionQuery {
  std::vector<float> q;  ///< [rows][group][head_dim]
  std::vector<Position> positions;
  int group = 1;
  int window = 0;
  int layer = 0;
  int kv_head = 0;
};

inline AttentionResult attend(const KernelTable& table, PagedKvFixture& kv,
                              const AttentionQuery& query, int first_page_number = 0) {
  const int rows = static_cast<int>(query.positions.size());
  const int group = query.group;
  const int head_dim = kv.layout().head_dim;
  const int per_segment = kAttentionSegmentSlots / kv.layout().page_tokens;
  const int last = first_page_number + kv.page_count() - first_page_number;
  const int first_segment = first_page_number / per_segment;
  const int segments = std::max(1, (last + per_segment - 1) / per_segment - first_segment);
  const std::size_t stats = static_cast<std::size_t>(rows) * static_cast<std::size_t>(group);
  const std::size_t values = stats * static_cast<std::size_t>(head_dim);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  AttentionResult result;
  result.max.assign(stats * static_cast<std::size_t>(segments), nan);
  result.sum = result.max;
  std::vector<float> partial(values * static_cast<std::size_t>(segments), nan);
  result.mass.assign(static_cast<std::size_t>(kv.page_count() - first_page_number) * stats, nan);
  AlignedBytes scratch(table.attention_scratch_bytes(kv.layout(), rows, group));
  std::memset(scratch.data(), 0xff, table.attention_scratch_bytes(kv.layout(), rows, group));
  for (int s = 0; s < segments; ++s) {
    const int begin = std::max(first_page_number, (first_segment + s) * per_segment);
    const int end = std::min(last, (first_segment + s + 1) * per_segment);
    AttentionArgs args;
    args.layout = &kv.layout();
    args.layer = query.layer;
    args.kv_head = query.kv_head;
    args.pages = kv.pages().data() + begin;
    args.page_count = std::max(0, end - begin);
    args.first_page_number = begin;
    args.window = query.window;
    args.q = query.q.data();
    args.q_stride = group * head_dim;
    args.positions = query.positions.data();
    args.rows = rows;
    args.group = group;
    args.max = result.max.data() + static_cast<std::size_t>(s) * stats;
    args.sum = result.sum.data() + static_cast<std::size_t>(s) * stats;
    args.out = partial.data() + static_cast<std::size_t>(s) * values;
    args.page_sum =
        result.mass.data() + static_cast<std::size_t>(begin - first_page_number) * stats;
    args.scratch = scratch.data();
    table.attention(args);
  }
  result.out.assign(values, nan);
  for (int row = 0; row < rows; ++row) {
    const std::size_t r = static_cast<std::size_t>(row) * static_cast<std::size_t>(group);
    std::vector<float> scale(static_cast<std::size_t>(segments * group), nan);
    MergeAttentionArgs merge;
    merge.segments = segments;
    merge.group = group;
    merge.head_dim = head_dim;
    merge.max = result.max.data() + r;
    merge.sum = result.sum.data() + r;
    merge.partial = partial.data() + r * static_cast<std::size_t>(head_dim);
    merge.stat_stride = static_cast<std::ptrdiff_t>(stats);
    merge.out_stride = static_cast<std::ptrdiff_t>(values);
    merge.out = result.out.data() + r * static_cast<std::size_t>(head_dim);
    merge.segment_scale = scale.data();
    table.merge_attention(merge);
    for (int page = first_page_number; page < kv.page_count(); ++page) {
      for (int g = 0; g < group; ++g) {
        const int s = page / per_segment - first_segment;
        result.mass[static_cast<std::size_t>(page - first_page_number) * stats + r +
                    static_cast<std::size_t>(g)] *= scale[static_cast<std::size_t>(s * group + g)];
      }
    }
  }
  return result;
}

/// Attention in double, over the stored numbers, with no tiles and no segments.
inline std::vector<double> attention_truth(PagedKvFixture& kv, const AttentionQuery& query,
                                           int first_page_number = 0) {
  const KvPageLayout& layout = kv.layout();
  const std::size_t dims = static_cast<std::size_t>(layout.head_dim);
  const std::size_t slots = static_cast<std::size_t>(layout.page_tokens);
  const std::size_t half = dims * slots;
  std::vector<float> numbers(static_cast<std::size_t>(kv.page_count()) * 2 * half);
  for (std::size_t p = 0; p < kv.pages().size(); ++p) {
    const KvPageLayout form = layout.in(kv.pages()[p].format);
    decode_kv_head(form, kv.pages()[p].base + form.head_offset(query.layer, query.kv_head),
                   layout.page_tokens, numbers.data() + 2 * half * p,
                   numbers.data() + 2 * half * p + half);
  }
  std::vector<double> out(query.q.size(), 0.0);
  for (std::size_t r = 0; r < query.q.size() / dims; ++r) {
    const Position position = query.positions[r / static_cast<std::size_t>(query.group)];
    std::vector<double> scores;
    std::vector<const float*> values;
    for (std::size_t p = static_cast<std::size_t>(first_page_number); p < kv.pages().size(); ++p) {
      const KvPageRef& page = kv.pages()[p];
      const float* keys = numbers.data() + 2 * half * p;
      for (std::size_t s = 0; s < static_cast<std::size_t>(page.filled); ++s) {
        const Position at = page.first_position + static_cast<Position>(s);
        if (at > position || (query.window != 0 && at <= position - query.window)) continue;
        double score = 0;
        for (std::size_t d = 0; d < dims; ++d) {
          score +=
              static_cast<double>(query.q[r * dims + d]) * static_cast<double>(keys[d * slots + s]);
        }
        scores.push_back(score);
        values.push_back(keys + half + s * dims);
      }
    }
    if (scores.empty()) continue;
    const double max = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp2(score - max);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      for (std::size_t d = 0; d < dims; ++d) {
        out[r * dims + d] += scores[i] / sum * static_cast<double>(values[i][d]);
      }
    }
  }
  return out;
}

}  // namespace memdecay
