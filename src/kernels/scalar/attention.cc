// The truth of attention: one query row and one key at a time, double inside, no tiles.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "kernels/scalar/table.h"
#include "quant/half.h"

namespace memdecay::scalar {
namespace {

/// Element `column` of row `row` in rows of `length`.
std::size_t index_of(int row, int length, int column) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(length) +
         static_cast<std::size_t>(column);
}

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

float element(const std::byte* values, std::size_t i, KvFormat format) {
  if (format == KvFormat::kF32) return reinterpret_cast<const float*>(values)[i];
  return half_to_float(reinterpret_cast<const std::uint16_t*>(values)[i]);
}

int code_at(const std::byte* codes, int bits, int depth, int column, int columns) {
  const CodePlace place = code_place(bits, depth, column, columns);
  return (std::to_integer<int>(codes[place.byte]) >> place.shift) & ((1 << bits) - 1);
}

/// A code's number; its scale is one of `count`, and as many minima follow.
float number_of(int code, const std::byte* scales, int count, int i) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(scales);
  return static_cast<float>(code) * half_to_float(halves[i]) + half_to_float(halves[count + i]);
}

/// One head of one layer in one page, whatever its form.
class PageHead {
 public:
  PageHead(const AttentionArgs& args, int page)
      : layout_(args.layout->in(args.pages[page].format)),
        keys_(args.pages[page].base + layout_.head_offset(args.layer, args.kv_head)),
        values_(keys_ + layout_.key_bytes()) {}

  float key(int slot, int d) const {
    if (!is_quantized(layout_.format))
      return element(keys_, index_of(d, layout_.page_tokens, slot), layout_.format);
    const int code = code_at(keys_, key_bits(layout_.format), d, slot, layout_.page_tokens);
    return number_of(code, keys_ + layout_.key_code_bytes(), layout_.head_dim, d);
  }

  float value(int slot, int d) const {
    if (!is_quantized(layout_.format))
      return element(values_, index_of(slot, layout_.head_dim, d), layout_.format);
    const int slots = layout_.page_tokens;
    const int code = code_at(values_, value_bits(layout_.format), slot, d, layout_.head_dim);
    const std::size_t run = index_of(d / kValueScaleRun, 4 * slots, 0);
    return number_of(code, values_ + layout_.value_code_bytes() + run, slots, slot);
  }

 private:
  KvPageLayout layout_;
  const std::byte* keys_;
  const std::byte* values_;
};

void set_element(std::byte* values, std::size_t i, KvFormat format, float value) {
  if (format == KvFormat::kF32) {
    reinterpret_cast<float*>(values)[i] = value;
  } else {
    reinterpret_cast<std::uint16_t*>(values)[i] = float_to_half(value);
  }
}

std::size_t attention_scratch_bytes(const KvPageLayout& layout, int, int) {
  return static_cast<std::size_t>(layout.head_dim) * sizeof(double);
}

/// One query row of one head over the item's pages.
class RowAttention {
 public:
  RowAttention(const AttentionArgs& args, int row, int head)
      : args_(args),
        layout_(*args.layout),
        position_(args.positions[row]),
        q_(args.q + row * args.q_stride + head * layout_.head_dim) {}

  bool visible(int page, int slot) const {
    const KvPageRef& ref = args_.pages[page];
    const Position position = ref.first_position + slot;
    return slot < ref.filled && position <= position_ &&
           (args_.window == 0 || position > position_ - args_.window);
  }

  double score(int page, int slot) const {
    const PageHead head(args_, page);
    double sum = 0;
    for (int d = 0; d < layout_.head_dim; ++d) {
      sum += static_cast<double>(q_[d]) * static_cast<double>(head.key(slot, d));
    }
    return sum;
  }

  /// The largest visible score, rounded to float as the caller will see it.
  float max_score() const {
    double max = kMinusInfinity;
    for (int page = 0; page < args_.page_count; ++page) {
      for (int slot = 0; slot < layout_.page_tokens; ++slot) {
        if (visible(page, slot)) max = std::max(max, score(page, slot));
      }
    }
    return static_cast<float>(max);
  }

  /// Adds 2^(score - max) * v of the page's visible slots to out; returns the sum of the weights.
  double add_page(int page, float max, double* out) const {
    const PageHead head(args_, page);
    double sum = 0;
    for (int slot = 0; slot < layout_.page_tokens; ++slot) {
      if (!visible(page, slot)) continue;
      const double weight = std::exp2(score(page, slot) - static_cast<double>(max));
      sum += weight;
      for (int d = 0; d < layout_.head_dim; ++d) {
        out[d] += weight * static_cast<double>(head.value(slot, d));
      }
    }
    return sum;
  }

 private:
  const AttentionArgs& args_;
  const KvPageLayout& layout_;
  Position position_;
  const float* q_;
};

void attend_row(const AttentionArgs& args, int row, int head) {
  const RowAttention attention(args, row, head);
  const int head_dim = args.layout->head_dim;
  const std::ptrdiff_t r = static_cast<std::ptrdiff_t>(row) * args.group + head;
  double* out = reinterpret_cast<double*>(args.scratch);
  std::fill_n(out, head_dim, 0.0);
  const float max = attention.max_score();
  double sum = 0;
  for (int page = 0; page < args.page_count; ++page) {
    const double page_sum = attention.add_page(page, max, out);
    sum += page_sum;
    if (args.page_sum != nullptr) {
      const std::ptrdiff_t rows = static_cast<std::ptrdiff_t>(args.rows) * args.group;
      args.page_sum[page * rows + r] = static_cast<float>(page_sum);
    }
  }
  args.max[r] = max;
  args.sum[r] = static_cast<float>(sum);
  for (int d = 0; d < head_dim; ++d) args.out[r * head_dim + d] = static_cast<float>(out[d]);
}

void attention(const AttentionArgs& args) {
  for (int row = 0; row < args.rows; ++row) {
    for (int head = 0; head < args.group; ++head) attend_row(args, row, head);
  }
}

void merge_head(const MergeAttentionArgs& args, int head) {
  double max = kMinusInfinity;
  for (int s = 0; s < args.segments; ++s) {
    max = std::max(max, static_cast<double>(args.max[s * args.stat_stride + head]));
  }
  const auto weight = [&](int s) {
    const double segment_max = static_cast<double>(args.max[s * args.stat_stride + head]);
    return segment_max == kMinusInfinity ? 0.0 : std::exp2(segment_max - max);
  };
  double sum = 0;
  for (int s = 0; s < args.segments; ++s) {
    sum += weight(s) * static_cast<double>(args.sum[s * args.stat_stride + head]);
  }
  const double scale = sum == 0.0 ? 0.0 : 1.0 / sum;
  for (int d = 0; d < args.head_dim; ++d) {
    double value = 0;
    for (int s = 0; s < args.segments; ++s) {
      const float* partial = args.partial + s * args.out_stride + head * args.head_dim;
      if (weight(s) != 0.0) value += weight(s) * scale * static_cast<double>(partial[d]);
    }
    args.out[head * args.head_dim + d] = static_cast<float>(value);
  }
  if (args.segment_scale == nullptr) return;
  for (int s = 0; s < args.segments; ++s) {
    args.segment_scale[s * args.group + head] = static_cast<float>(weight(s) * scale);
  }
}

void merge_attention(const MergeAttentionArgs& args) {
  for (int head = 0; head < args.group; ++head) merge_head(args, head);
}

void store_kv(const StoreKvArgs& args) {
  const KvPageLayout& layout = *args.layout;
  MEMDECAY_CHECK(!is_quantized(layout.format));
  std::byte* values = args.head + layout.key_bytes();
  for (int token = 0; token < args.tokens; ++token) {
    const int slot = args.first_slot + token;
    for (int d = 0; d < layout.head_dim; ++d) {
      set_element(args.head, index_of(d, layout.page_tokens, slot), layout.format,
                  args.k[token * args.k_stride + d]);
      set_element(values, index_of(slot, layout.head_dim, d), layout.format,
                  args.v[token * args.v_stride + d]);
    }
  }
}

}  // namespace

void add_attention(KernelTable& table) {
  table.attention_scratch_bytes = attention_scratch_bytes;
  table.attention = attention;
  table.merge_attention = merge_attention;
  table.store_kv = store_kv;
}

}  // namespace memdecay::scalar
