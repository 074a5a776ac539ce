#include "model/transformer/key_similarity.h"

#include <array>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "quant/kv_page_codec.h"

namespace memdecay {
namespace {

constexpr std::size_t kMostSlots = 64;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

/// Adds the unit keys of one head, [head_dim][page_tokens], to its part of the sum.
void add_head(const float* keys, const KvPageLayout& layout, std::size_t tokens, float* sum) {
  const std::size_t stride = to_size(layout.page_tokens);
  std::array<double, kMostSlots> scale = {};
  for (std::size_t d = 0; d < to_size(layout.head_dim); ++d) {
    for (std::size_t slot = 0; slot < tokens; ++slot) {
      const double k = static_cast<double>(keys[d * stride + slot]);
      scale[slot] += k * k;
    }
  }
  for (double& length : scale) length = length == 0.0 ? 0.0 : 1.0 / std::sqrt(length);
  for (std::size_t d = 0; d < to_size(layout.head_dim); ++d) {
    double total = 0;
    for (std::size_t slot = 0; slot < tokens; ++slot)
      total += static_cast<double>(keys[d * stride + slot]) * scale[slot];
    sum[d] += static_cast<float>(total);
  }
}

}  // namespace

std::size_t key_direction_size(const KvPageLayout& layout) {
  return to_size(layout.layers) * to_size(layout.kv_heads) * to_size(layout.head_dim);
}

void add_key_directions(const KvPageLayout& layout, const KvPageRef& page, std::span<float> sum) {
  MEMDECAY_CHECK(sum.size() == key_direction_size(layout));
  MEMDECAY_CHECK(to_size(layout.page_tokens) <= kMostSlots);
  const KvPageLayout own = layout.in(page.format);
  std::vector<float> keys(to_size(own.head_dim) * to_size(own.page_tokens));
  std::vector<float> values(keys.size());
  float* to = sum.data();
  for (int layer = 0; layer < own.layers; ++layer) {
    for (int head = 0; head < own.kv_heads; ++head, to += own.head_dim) {
      decode_kv_head(own, page.base + own.head_offset(layer, head), page.filled, keys.data(),
                     values.data());
      add_head(keys.data(), own, to_size(page.filled), to);
    }
  }
}

void scale_to_unit(const KvPageLayout& layout, std::span<const double> sum, std::span<float> unit) {
  MEMDECAY_CHECK(sum.size() == key_direction_size(layout) && unit.size() == sum.size());
  const std::size_t head_dim = to_size(layout.head_dim);
  for (std::size_t head = 0; head < sum.size(); head += head_dim) {
    double square = 0;
    for (std::size_t d = head; d < head + head_dim; ++d) square += sum[d] * sum[d];
    const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
    for (std::size_t d = head; d < head + head_dim; ++d)
      unit[d] = static_cast<float>(sum[d] * scale);
  }
}

float key_similarity(const KvPageLayout& layout, std::span<const float> page_sum, int tokens,
                     std::span<const float> unit) {
  MEMDECAY_CHECK(page_sum.size() == key_direction_size(layout));
  MEMDECAY_CHECK(unit.size() == page_sum.size());
  if (tokens == 0) return 0;
  double similarity = 0;
  for (std::size_t i = 0; i < page_sum.size(); ++i)
    similarity += static_cast<double>(page_sum[i]) * static_cast<double>(unit[i]);
  const std::size_t heads = page_sum.size() / to_size(layout.head_dim);
  return static_cast<float>(similarity / (static_cast<double>(heads) * tokens));
}

void key_similarities(const PagedKvView& view, std::span<float> out) {
  MEMDECAY_CHECK(out.size() == view.pages.size());
  const std::size_t size = key_direction_size(*view.layout);
  std::vector<float> sums(size * view.pages.size()), unit(size);
  std::vector<double> all(size);
  const auto sum_of = [&](std::size_t page) { return std::span(sums).subspan(page * size, size); };
  for (std::size_t page = 0; page < out.size(); ++page) {
    add_key_directions(*view.layout, view.pages[page], sum_of(page));
    for (std::size_t i = 0; i < size; ++i) all[i] += static_cast<double>(sum_of(page)[i]);
  }
  scale_to_unit(*view.layout, all, unit);
  for (std::size_t page = 0; page < out.size(); ++page)
    out[page] = key_similarity(*view.layout, sum_of(page), view.pages[page].filled, unit);
}

}  // namespace memdecay
