#include "model/transformer/key_similarity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "kernels/kernel_table.h"
#include "quant/kv_page_codec.h"

namespace memdecay {
namespace {

/// Pages of random keys around a common mean, and the keys themselves as they were stored.
class KeyPages {
 public:
  KeyPages(const KvPageLayout& layout, std::vector<int> filled, std::uint32_t seed)
      : layout_(layout), slab_(layout.page_bytes() * filled.size()) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.4F);
    for (std::size_t page = 0; page < filled.size(); ++page) {
      std::byte* base = slab_.data() + page * layout.page_bytes();
      refs_.push_back({base, 0, filled[page], layout.format});
      for (int layer = 0; layer < layout.layers; ++layer) {
        for (int head = 0; head < layout.kv_heads; ++head) {
          std::vector<float> k(size(filled[page] * layout.head_dim));
          // Halves hold these exactly.
          for (float& x : k) x = std::round(normal(random) * 256.0F) / 256.0F;
          scalar_kernels().store_kv({&layout_, base + layout.head_offset(layer, head), 0,
                                     filled[page], k.data(), k.data(), layout.head_dim,
                                     layout.head_dim});
          keys_.push_back(std::move(k));
        }
      }
    }
  }

  PagedKvView view() const { return {&layout_, refs_, 0}; }
  const std::vector<KvPageRef>& refs() const { return refs_; }

  /// Token by token, as KeyDiff states it.
  std::vector<double> naive() const {
    const std::size_t heads = size(layout_.layers * layout_.kv_heads), dim = size(layout_.head_dim);
    std::vector<double> result(refs_.size());
    for (std::size_t head = 0; head < heads; ++head) {
      std::vector<double> direction(dim);
      for (std::size_t page = 0; page < refs_.size(); ++page) {
        const std::vector<float>& k = keys_[page * heads + head];
        for (std::size_t i = 0; i < k.size(); ++i)
          direction[i % dim] += double{k[i]} / length(k.data() + i / dim * dim, dim);
      }
      for (std::size_t page = 0; page < refs_.size(); ++page) {
        const std::vector<float>& k = keys_[page * heads + head];
        for (std::size_t token = 0; token * dim < k.size(); ++token) {
          double product = 0;
          for (std::size_t d = 0; d < dim; ++d)
            product += double{k[token * dim + d]} * direction[d];
          result[page] += product / length(k.data() + token * dim, dim) /
                          length(direction.data(), dim) /
                          static_cast<double>(heads * k.size() / dim);
        }
      }
    }
    return result;
  }

 private:
  static std::size_t size(int n) { return static_cast<std::size_t>(n); }
  template <typename T>
  static double length(const T* x, std::size_t n) {
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) square += double{x[i]} * double{x[i]};
    return std::sqrt(square);
  }

  KvPageLayout layout_;
  std::vector<std::byte> slab_;
  std::vector<KvPageRef> refs_;
  std::vector<std::vector<float>> keys_;  // by page, layer, head: [tokens][head_dim]
};

TEST(KeySimilarityTest, EqualsTheMeanCosineTokenByToken) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
    for (const int page_tokens : {16, 32, 64}) {
      const KeyPages pages({2, 3, 20, page_tokens, format}, {page_tokens, 1, 7, page_tokens, 13},
                           3);
      std::vector<float> actual(pages.refs().size());
      key_similarities(pages.view(), actual);
      const std::vector<double> expected = pages.naive();
      for (std::size_t page = 0; page < actual.size(); ++page)
        EXPECT_NEAR(actual[page], expected[page], 1e-6) << page;
    }
  }
}

TEST(KeySimilarityTest, APageIsReadOnceAndJudgedLater) {
  const KvPageLayout layout{2, 2, 16, 16, KvFormat::kF16};
  const KeyPages pages(layout, {16, 16, 5}, 4);
  std::vector<float> expected(3), unit(key_direction_size(layout));
  std::vector<double> all(unit.size());
  key_similarities(pages.view(), expected);
  std::vector<std::vector<float>> sums;
  for (const KvPageRef& page : pages.refs()) {
    sums.emplace_back(all.size());
    add_key_directions(layout, page, sums.back());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += static_cast<double>(sums.back()[i]);
  }
  scale_to_unit(layout, all, unit);
  for (std::size_t page = 0; page < sums.size(); ++page)
    EXPECT_EQ(key_similarity(layout, sums[page], pages.refs()[page].filled, unit), expected[page]);
}

TEST(KeySimilarityTest, CodesAreReadAsTheyDecode) {
  const KvPageLayout layout{2, 2, 32, 16, KvFormat::kF16};
  const KeyPages pages(layout, {16, 16, 11}, 5);
  std::vector<float> expected(3), actual(3);
  key_similarities(pages.view(), expected);
  for (const auto& [form, tolerance] :
       {std::pair{KvFormat::kInt8, 2e-3F}, {KvFormat::kK8V4, 2e-3F}, {KvFormat::kInt4, 2e-2F}}) {
    const KvPageLayout coded = layout.in(form);
    std::vector<KvPageRef> refs = pages.refs();
    std::vector<std::vector<std::byte>> slabs;
    for (KvPageRef& ref : refs) {
      auto& slab = slabs.emplace_back(coded.page_bytes());
      ASSERT_TRUE(convert_kv_page(layout, ref.base, coded, slab.data(), ref.filled).has_value());
      ref.base = slab.data();
      ref.format = form;
    }
    key_similarities({&layout, refs, 0}, actual);
    for (std::size_t page = 0; page < actual.size(); ++page)
      EXPECT_NEAR(actual[page], expected[page], tolerance) << kv_format_name(form);
  }
}

TEST(KeySimilarityTest, KeysAlikeAreAtOneOppositeAtMinusOneAndZeroKeysAtZero) {
  const KvPageLayout layout{1, 1, 2, 16, KvFormat::kF32};
  std::vector<std::vector<float>> slab(4, std::vector<float>(2 * 2 * 16));
  std::vector<KvPageRef> refs;
  for (auto& page : slab)
    refs.push_back({reinterpret_cast<std::byte*>(page.data()), 0, 2, KvFormat::kF32});
  const auto set_key = [&](std::size_t page, std::size_t slot, float x, float y) {
    slab[page][slot] = x;
    slab[page][16 + slot] = y;
  };
  set_key(0, 0, 3, 4), set_key(0, 1, 30, 40);      // the direction, whatever the length
  set_key(1, 0, -3, -4), set_key(1, 1, 6, 8);      // one each way: 0
  set_key(2, 0, 0, 0), set_key(2, 1, 0.3F, 0.4F);  // a key without direction counts as 0
  refs[3].filled = 0;
  std::vector<float> actual(4);
  key_similarities({&layout, refs, 0}, actual);
  EXPECT_FLOAT_EQ(actual[0], 1.0F);
  EXPECT_NEAR(actual[1], 0.0F, 1e-6F);
  EXPECT_FLOAT_EQ(actual[2], 0.5F);
  EXPECT_EQ(actual[3], 0.0F);
  std::vector<float> opposite(2), against = {-0.6F, -0.8F};
  add_key_directions(layout, refs[0], opposite);
  EXPECT_FLOAT_EQ(key_similarity(layout, opposite, 2, against), -1.0F);
}

}  // namespace
}  // namespace memdecay
