#include "model/transformer/key_similarity.h"

#include <cmath>
#include <vector>

#include "core/check.h"
#include "quant/half.h"

namespace memdecay {
namespace {

constexpr int kMostSlots = 64;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

/// K of one head: [head_dim][page_tokens].
class HeadKeys {
 public:
  HeadKeys(const KvPageLayout& layout, const std::byte* head)
      : head_(head), format_(layout.format), stride_(to_size(layout.page_tokens)) {}

  float at(std::size_t dimension, std::size_t slot) const {
    const std::size_t i = dimension * stride_ + slot;
    if (format_ == KvFormat::kF32) return reinterpret_cast<const float*>(head_)[i];
    return half_to_float(reinterpret_cast<const std::uint16_t*>(head_)[i]);
  }

 private:
  const std::byte* head_;
  KvFormat format_;
  std::size_t stride_;
};

void add_head(const HeadKeys& keys, std::size_t head_dim, std::size_t tokens, float* sum) {
  double square[kMostSlots] = {};
  for (std::size_t d = 0; d < head_dim; ++d) {
    for (std::size_t slot = 0; slot < tokens; ++slot) {
      const double k = static_cast<double>(keys.at(d, slot));
      square[slot] += k * k;
    }
  }
  for (std::size_t slot = 0; slot < tokens; ++slot)
    square[slot] = square[slot] == 0.0 ? 0.0 : 1.0 / std::sqrt(square[slot]);
  for (std::size_t d = 0; d < head_dim; ++d) {
    double total = 0;
    for (std::size_t slot = 0; slot < tokens; ++slot)
      total += static_cast<double>(keys.at(d, slot)) * square[slot];
    sum[d] += static_cast<float>(total);
  }
}

}  // namespace

std::size_t key_direction_size(const KvPageLayout& layout) {
  return to_size(layout.layers) * to_size(layout.kv_heads) * to_size(layout.head_dim);
}

void add_key_directions(const KvPageLayout& layout, const KvPageRef& page, std::span<float> sum) {
  MEMDECAY_CHECK(sum.size() == key_direction_size(layout));
  MEMDECAY_CHECK(!is_quantized(page.format) && layout.page_tokens <= kMostSlots);
  const KvPageLayout own = layout.in(page.format);
  float* to = sum.data();
  for (int layer = 0; layer < own.layers; ++layer) {
    for (int head = 0; head < own.kv_heads; ++head, to += own.head_dim) {
      add_head(HeadKeys(own, page.base + own.head_offset(layer, head)), to_size(own.head_dim),
               to_size(page.filled), to);
    }
  }
}

float key_similarity(const KvPageLayout& layout, std::span<const float> page_sum, int tokens,
                     std::span<const float> sequence_sum) {
  MEMDECAY_CHECK(page_sum.size() == key_direction_size(layout));
  MEMDECAY_CHECK(sequence_sum.size() == page_sum.size());
  if (tokens == 0) return 0;
  const std::size_t head_dim = to_size(layout.head_dim);
  double similarity = 0;
  for (std::size_t head = 0; head < page_sum.size(); head += head_dim) {
    double product = 0, square = 0;
    for (std::size_t d = head; d < head + head_dim; ++d) {
      const double direction = static_cast<double>(sequence_sum[d]);
      product += static_cast<double>(page_sum[d]) * direction;
      square += direction * direction;
    }
    if (square > 0.0) similarity += product / std::sqrt(square);
  }
  const std::size_t heads = page_sum.size() / head_dim;
  return static_cast<float>(similarity / (static_cast<double>(heads) * tokens));
}

void key_similarities(const PagedKvView& view, std::span<float> out) {
  MEMDECAY_CHECK(out.size() == view.pages.size());
  const std::size_t size = key_direction_size(*view.layout);
  std::vector<float> sums(size * view.pages.size()), all(size);
  const auto sum_of = [&](std::size_t page) { return std::span(sums).subspan(page * size, size); };
  for (std::size_t page = 0; page < out.size(); ++page) {
    add_key_directions(*view.layout, view.pages[page], sum_of(page));
    for (std::size_t i = 0; i < size; ++i) all[i] += sum_of(page)[i];
  }
  for (std::size_t page = 0; page < out.size(); ++page)
    out[page] = key_similarity(*view.layout, sum_of(page), view.pages[page].filled, all);
}

}  // namespace memdecay
