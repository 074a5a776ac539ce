// Attention over quantized pages: sums of codes, their edges, and what they may differ by.
#include <cstdint>
#include <limits>
#include <string>

#include "kernels/attention_table_fixture.h"

namespace memdecay {
namespace {

class AttentionOfCodes : public AttentionOfTable {};

/// The same numbers in fp32 pages, which are always widened.
PagedKvFixture in_floats(PagedKvFixture& kv, int tokens) {
  PagedKvFixture floats(kv.layout().in(KvFormat::kF32), tokens, 1);
  for (std::size_t p = 0; p < kv.pages().size(); ++p) {
    const KvPageRef& from = kv.pages()[p];
    KvPageRef& to = floats.pages()[p];
    to.first_position = from.first_position;
    to.filled = from.filled;
    convert_kv_page(kv.layout().in(from.format), from.base, floats.layout(), to.base,
                    kv.layout().page_tokens);
  }
  return floats;
}

TEST_P(AttentionOfCodes, EveryFormMatchesTheTruth) {
  int number = 0;
  for (const int head_dim : {64, 80, 96, 128, 256}) {
    for (const int page_tokens : {16, 32, 64}) {
      for (const int form : {0, 1, 2, 3}) {  // 3: mixed
        for (int group = 1; group <= 8; ++group, ++number) {
          if (scalar() && number % 9 != 0) continue;
          constexpr int kRows[] = {1, 1, 2, 5, 1, 33, 3};
          constexpr int kTokens[] = {33, 65, 127, 128, 129, 200, 257};
          constexpr int kWindows[] = {0, 0, 5, 100};
          const int rows = kRows[number % 7];
          const int tokens = kTokens[number / 2 % 7];
          SCOPED_TRACE(testing::Message()
                       << "head_dim " << head_dim << " page " << page_tokens << " form " << form
                       << " group " << group << " rows " << rows << " tokens " << tokens);
          const KvFormat format = form < 3 ? kQuantized[form] : KvFormat::kF16;
          PagedKvFixture kv(head_dim, page_tokens, format, tokens, static_cast<unsigned>(number));
          if (form == 3) mix_forms(kv, number);
          expect_right(kv, make_query(kv, rows, group, tokens, kWindows[number / 3 % 4]));
        }
      }
    }
  }
}

TEST_P(AttentionOfCodes, QuantizedPagesAreAsGoodAsTheirNumbersInFloats) {
  constexpr int kTokens = 300;
  for (const int head_dim : {64, 80, 128}) {
    for (const int page_tokens : {16, 32, 64}) {
      for (int form = 0; form < 4; ++form) {
        const KvFormat format = form < 3 ? kQuantized[form] : KvFormat::kF16;
        PagedKvFixture kv(head_dim, page_tokens, format, kTokens, static_cast<unsigned>(form));
        if (form == 3) mix_forms(kv, head_dim);
        PagedKvFixture floats = in_floats(kv, kTokens);
        const AttentionQuery query = make_query(kv, 3, 4, kTokens, 0);
        const AttentionResult got = attend(table(), kv, query);
        const AttentionResult want = attend(table(), floats, query);
        const std::vector<double> out(want.out.begin(), want.out.end());
        const std::vector<double> mass(want.mass.begin(), want.mass.end());
        ASSERT_LE(nmse(got.out, out), 2e-7) << head_dim << " " << page_tokens << " " << form;
        ASSERT_LE(nmse(got.mass, mass), 2e-7) << head_dim << " " << page_tokens << " " << form;
      }
    }
  }
}

/// Adds up 16 lanes in the order of every vector table.
float sum_of_lanes(const float* x) {
  float y[8];
  for (int i = 0; i < 8; ++i) y[i] = x[i] + x[i + 8];
  return ((y[0] + y[2]) + (y[1] + y[3])) + ((y[4] + y[6]) + (y[5] + y[7]));
}

/// The scales (0) or minima (1) of one page: of K per channel, of V of one slot per run.
float half_of(const std::byte* at, int i) {
  std::uint16_t half = 0;
  std::memcpy(&half, at + 2 * i, 2);
  return half_to_float(half);
}

TEST_P(AttentionOfCodes, ScoresOfCodesAreIntegerSums) {
  // The definition, number by number: one slot is visible, so its score is the maximum, and its
  // weight is 1.
  if (scalar()) GTEST_SKIP() << "real numbers";
  constexpr int kDims = 64, kSlots = 32;
  for (const KvFormat format : kQuantized) {
    PagedKvFixture kv(kDims, kSlots, format, 1, 5);
    const AttentionQuery query = make_query(kv, 1, 1, 1, 0);
    const AttentionResult got = attend(table(), kv, query);
    const KvPageLayout layout = kv.layout().in(format);
    const std::byte* keys = kv.pages()[0].base;
    const std::byte* values = keys + layout.key_bytes();
    const std::byte* key_scales = keys + layout.key_code_bytes();
    float q_most = 0, most = 0;
    for (int d = 0; d < kDims; ++d) {
      q_most = std::max(q_most, std::fabs(query.q[size(d)]));
      most = std::max(most, half_of(key_scales, d));
    }
    int sum = 0;
    float lanes[16] = {};
    for (int d = 0; d < kDims; ++d) {
      const float q = query.q[size(d)];
      const CodePlace place = code_place(key_bits(format), d, 0, kSlots);
      const int code =
          std::to_integer<int>(keys[place.byte]) >> place.shift & ((1 << key_bits(format)) - 1);
      const float unit = q * (32767.0f / q_most);
      const float scale = half_of(key_scales, d) * (1.0f / most);
      sum += code * static_cast<int>(std::nearbyint(unit * scale));
      lanes[d % 16] = std::fma(q, half_of(key_scales, kDims + d), lanes[d % 16]);
    }
    const float step = q_most * (most / 32767.0f);
    EXPECT_EQ(got.max[0], std::fma(static_cast<float>(sum), step, sum_of_lanes(lanes)));
    for (int d = 0; d < kDims; ++d) {
      const CodePlace place = code_place(value_bits(format), 0, d, kDims);
      const int code =
          std::to_integer<int>(values[place.byte]) >> place.shift & ((1 << value_bits(format)) - 1);
      const std::byte* run = values + layout.value_code_bytes() + d / 32 * 4 * kSlots;
      const float scale = half_of(run, 0);
      EXPECT_EQ(got.out[size(d)],
                std::fma(static_cast<float>(code * 32767), scale / 32767.0f, half_of(run, kSlots)));
    }
  }
}

/// Sets every code of a head to its largest, every scale to `scale` and every minimum to 0.
void fill_codes(const KvPageLayout& layout, std::byte* head, float scale) {
  const std::uint16_t half = float_to_half(scale);
  std::memset(head, 0xff, layout.head_bytes());
  const auto fill_scales = [&](std::byte* at, int blocks, int count) {
    for (int i = 0; i < blocks * 2 * count; ++i) {
      const std::uint16_t pair = i / count % 2 == 0 ? half : std::uint16_t{0};
      std::memcpy(at + 2 * i, &pair, 2);
    }
  };
  fill_scales(head + layout.key_code_bytes(), 1, layout.head_dim);
  fill_scales(head + layout.key_bytes() + layout.value_code_bytes(), layout.value_runs(),
              layout.page_tokens);
}

TEST_P(AttentionOfCodes, TheLargestSumsOfCodesFitIn32Bits) {
  // Every code and every factor at its largest, in as deep sums as there are: see code_product.h.
  if (scalar()) GTEST_SKIP() << "real numbers";
  constexpr float kScale = 0.5f;
  for (const int head_dim : {16, 64, 80, 256}) {
    for (const int page_tokens : {16, 32, 64}) {
      for (const KvFormat format : kQuantized) {
        for (const float q : {1.0f, -1.0f}) {
          SCOPED_TRACE(testing::Message() << head_dim << " " << page_tokens << " " << q);
          PagedKvFixture kv(head_dim, page_tokens, format, kAttentionTileSlots, 20);
          for (KvPageRef& page : kv.pages()) {
            fill_codes(kv.layout().in(format), page.base, kScale);
          }
          AttentionQuery query = make_query(kv, 1, 7, kAttentionTileSlots, 0);
          std::fill(query.q.begin(), query.q.end(), q);
          const AttentionResult got = attend(table(), kv, query);
          const auto most = [](int bits) { return ((std::int64_t{1} << bits) - 1) * 32767; };
          const auto score = static_cast<float>(most(key_bits(format)) * head_dim);
          const auto value = static_cast<float>(most(value_bits(format)) * kAttentionTileSlots);
          for (int r = 0; r < query.group; ++r) {
            ASSERT_EQ(got.max[size(r)], q * score * (kScale / 32767.0f));
            ASSERT_EQ(got.sum[size(r)], static_cast<float>(kAttentionTileSlots));
          }
          for (const float x : got.out) {
            ASSERT_EQ(x, value * (kScale / 32767.0f) / static_cast<float>(kAttentionTileSlots));
          }
        }
      }
    }
  }
}

TEST_P(AttentionOfCodes, QueriesAndPagesAtTheEdgesOfCodes) {
  constexpr int kTokens = 100;
  for (const KvFormat format : kQuantized) {
    // Constant pages have scale 0: minima alone.
    PagedKvFixture flat(64, 32, format, kTokens, 6, 0.0f);
    AttentionQuery query = make_query(flat, 2, 3, kTokens, 0);
    for (const float x : attend(table(), flat, query).out) EXPECT_EQ(x, 0.0f);
    PagedKvFixture kv(64, 32, format, kTokens, 7);
    // Queries too small to count, and none at all: the mean of the values.
    for (const float amplitude : {1e-38f, 1e-31f, 0.0f}) {
      query = make_query(kv, 2, 3, kTokens, 0, amplitude);
      expect_right(kv, query);
    }
    // One loud slot takes everything; the others' weights are far below the least.
    query = make_query(kv, 2, 3, kTokens, 0, 3e3f);
    for (const float x : attend(table(), kv, query).out) EXPECT_LE(std::fabs(x), 1.01f);
    if (scalar()) continue;
    query.q[5] = std::numeric_limits<float>::quiet_NaN();
    const AttentionResult got = attend(table(), kv, query);
    for (int d = 0; d < 64; ++d) {
      EXPECT_TRUE(std::isnan(got.out[size(d)]));
      EXPECT_FALSE(std::isnan(got.out[size(64 + d)])) << "another head's";
    }
  }
}

TEST_P(AttentionOfCodes, WhatUnfilledCodesHoldDoesNotMatter) {
  constexpr int kTokens = 70;
  for (const KvFormat format : kQuantized) {
    PagedKvFixture kv(64, 32, format, kTokens, 13);
    const AttentionQuery query = make_query(kv, 1, 3, kTokens, 0);
    const AttentionResult want = attend(table(), kv, query);
    // The last page holds 6 tokens. The other slots: all codes full, V's scales and minima 65504.
    const KvPageLayout layout = kv.layout().in(format);
    std::byte* keys = kv.pages().back().base;
    std::byte* values = keys + layout.key_bytes();
    const auto fill = [](std::byte* codes, int bits, CodePlace place) {
      codes[place.byte] |= static_cast<std::byte>((1 << bits) - 1) << place.shift;
    };
    const int k_bits = key_bits(format), v_bits = value_bits(format);
    for (int slot = 6; slot < 32; ++slot) {
      for (int d = 0; d < 64; ++d) {
        fill(keys, k_bits, code_place(k_bits, d, slot, 32));
        fill(values, v_bits, code_place(v_bits, slot, d, 64));
      }
      for (int i = 0; i < 2 * 2; ++i) {  // runs, scales and minima
        const std::uint16_t large = 0x7bff;
        std::memcpy(values + layout.value_code_bytes() + 2 * (i * 32 + slot), &large, 2);
      }
    }
    const AttentionResult got = attend(table(), kv, query);
    EXPECT_TRUE(same_bits(want.out.data(), got.out.data(), want.out.size()));
    EXPECT_TRUE(same_bits(want.mass.data(), got.mass.data(), want.mass.size()));
  }
}

TEST(AttentionDeathTest, QuantizedPagesAreNotWrittenSlotBySlot) {
  for (const KernelTable* table : supported_kernels()) {
    const KvPageLayout layout{1, 1, 64, 32, KvFormat::kInt8};
    std::vector<std::byte> page(layout.page_bytes());
    const std::vector<float> row(64);
    const StoreKvArgs args{&layout, page.data(), 0, 1, row.data(), row.data(), 64, 64};
    EXPECT_DEATH(table->store_kv(args), "is_quantized");
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionOfCodes,
                         testing::ValuesIn(supported_kernels().begin(), supported_kernels().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace memdecay
