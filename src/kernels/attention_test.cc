#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "kernels/attention_fixture.h"

namespace memdecay {
namespace {

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

/// Relative squared error of a result.
double nmse(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, power = 1e-30;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    power += want[i] * want[i];
  }
  return error / power;
}

bool same_bits(const float* a, const float* b, std::size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

AttentionQuery make_query(PagedKvFixture& kv, int rows, int group, int tokens, int window,
                          float amplitude = 1.0f) {
  AttentionQuery query;
  query.group = group;
  query.window = window;
  query.q = kv.random_floats(size(rows * group * kv.layout().head_dim), amplitude);
  for (int row = 0; row < rows; ++row) query.positions.push_back(tokens - rows + row);
  return query;
}

/// The same query, one row.
AttentionQuery row_of(const AttentionQuery& query, int row, int head_dim) {
  AttentionQuery one;
  one.group = query.group;
  one.window = query.window;
  one.layer = query.layer;
  one.kv_head = query.kv_head;
  const auto begin = query.q.begin() + row * query.group * head_dim;
  one.q.assign(begin, begin + query.group * head_dim);
  one.positions = {query.positions[size(row)]};
  return one;
}

constexpr KvFormat kQuantized[] = {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4};

/// Turns fp16 pages into pages of all forms, in an order that mixes every tile.
void mix_forms(PagedKvFixture& kv, int seed) {
  constexpr KvFormat kForms[] = {KvFormat::kF16, KvFormat::kInt4, KvFormat::kInt8, KvFormat::kInt8,
                                 KvFormat::kK8V4};
  for (int p = 0; p < kv.page_count(); ++p) kv.convert(p, kForms[(p * 7 + seed) % 5]);
}

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

/// What a result may differ from the truth by: codes meet factors of 16 bits.
double tolerance(PagedKvFixture& kv) {
  for (const KvPageRef& page : kv.pages()) {
    if (is_quantized(page.format)) return 2e-7;
  }
  return 1e-10;
}

class AttentionOfTable : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  bool scalar() const { return GetParam() == &scalar_kernels(); }

  /// Truth, masses, and equality of rows taken together and one by one.
  void expect_right(PagedKvFixture& kv, const AttentionQuery& query, int first_page_number = 0) {
    const int rows = static_cast<int>(query.positions.size());
    const std::size_t stats = size(rows * query.group);
    const AttentionResult got = attend(table(), kv, query, first_page_number);
    const std::vector<double> want = attention_truth(kv, query, first_page_number);
    ASSERT_LE(nmse(got.out, want), tolerance(kv));
    for (std::size_t r = 0; r < stats; ++r) {
      double mass = 0;
      for (std::size_t i = r; i < got.mass.size(); i += stats)
        mass += static_cast<double>(got.mass[i]);
      bool nothing = true;
      for (std::size_t i = r; i < got.sum.size(); i += stats) nothing &= got.sum[i] == 0.0f;
      ASSERT_NEAR(mass, nothing ? 0.0 : 1.0, 1e-4);
    }
    const std::size_t row_values = size(query.group * kv.layout().head_dim);
    for (int row = 0; row < rows; row += std::max(1, rows / 4)) {
      const AttentionResult alone =
          attend(table(), kv, row_of(query, row, kv.layout().head_dim), first_page_number);
      ASSERT_TRUE(same_bits(alone.out.data(), got.out.data() + size(row) * row_values, row_values))
          << "row " << row << " of " << rows;
      for (std::size_t page = 0; page < got.mass.size() / stats; ++page) {
        ASSERT_TRUE(same_bits(alone.mass.data() + page * size(query.group),
                              got.mass.data() + page * stats + size(row * query.group),
                              size(query.group)));
      }
    }
  }
};

TEST_P(AttentionOfTable, EveryShapeMatchesTheTruth) {
  int number = 0;
  for (const int head_dim : {64, 80, 96, 128, 256}) {
    for (const int page_tokens : {16, 32, 64}) {
      for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
        for (int group = 1; group <= 8; ++group) {
          if (scalar() && number % 5 != 0) {
            ++number;
            continue;
          }
          constexpr int kRows[] = {1, 2, 5, 7, 33, 12, 3};
          constexpr int kTokens[] = {33, 65, 127, 128, 129, 200, 257};
          constexpr int kWindows[] = {0, 0, 5, 100};
          const int rows = kRows[number % 7];
          const int tokens = kTokens[number / 2 % 7];
          SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << " page " << page_tokens
                                          << " format " << static_cast<int>(format) << " group "
                                          << group << " rows " << rows << " tokens " << tokens);
          PagedKvFixture kv(head_dim, page_tokens, format, tokens, static_cast<unsigned>(number));
          expect_right(kv, make_query(kv, rows, group, tokens, kWindows[number % 4]));
          ++number;
        }
      }
    }
  }
}

TEST_P(AttentionOfTable, EveryFormMatchesTheTruth) {
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

TEST_P(AttentionOfTable, QuantizedPagesAreAsGoodAsTheirNumbersInFloats) {
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

TEST_P(AttentionOfTable, ScoresOfCodesAreIntegerSums) {
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

TEST_P(AttentionOfTable, TheLargestSumsOfCodesFitIn32Bits) {
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

TEST_P(AttentionOfTable, QueriesAndPagesAtTheEdgesOfCodes) {
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

TEST_P(AttentionOfTable, EveryHeadOfEveryLayerIsFoundInEveryForm) {
  for (const KvFormat format :
       {KvFormat::kF16, KvFormat::kF32, KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4}) {
    PagedKvFixture kv(KvPageLayout{2, 3, 64, 32, format}, 150, 21);
    for (int layer = 0; layer < 2; ++layer) {
      for (int head = 0; head < 3; ++head) {
        AttentionQuery query = make_query(kv, 2, 3, 150, 0);
        query.layer = layer;
        query.kv_head = head;
        expect_right(kv, query);
      }
    }
  }
}

TEST_P(AttentionOfTable, ContextsAroundEveryBorder) {
  int number = 0;
  for (const int tokens : {1,   2,   15,   16,   17,   31,   32,   33,   63,   64,   65,   127,
                           128, 129, 1023, 1024, 1025, 1151, 1152, 1153, 2047, 2048, 2049, 3100}) {
    for (const int window : {0, 1, 31, 512}) {
      if (scalar() && number % 3 != 0) {
        ++number;
        continue;
      }
      const int page_tokens = 16 << (number % 3);
      const int rows = std::min(tokens, number % 2 == 0 ? 1 : 33);
      const int group = number % 8 + 1;
      SCOPED_TRACE(testing::Message() << "tokens " << tokens << " window " << window << " page "
                                      << page_tokens << " rows " << rows << " group " << group);
      PagedKvFixture kv(64, page_tokens, KvFormat::kF16, tokens, static_cast<unsigned>(number));
      expect_right(kv, make_query(kv, rows, group, tokens, window, 0.5f));
      mix_forms(kv, number);
      expect_right(kv, make_query(kv, rows, group, tokens, window, 0.5f));
      ++number;
    }
  }
}

TEST_P(AttentionOfTable, OddHeadSizes) {
  for (const int head_dim : {1, 2, 7, 8, 13, 24, 40, 65, 72, 100, 255}) {
    for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
      SCOPED_TRACE(testing::Message() << "head_dim " << head_dim);
      PagedKvFixture kv(head_dim, 32, format, 150, 7);
      expect_right(kv, make_query(kv, 9, 3, 150, 0));
    }
    for (const KvFormat format : kQuantized) {
      SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << " in codes");
      PagedKvFixture kv(head_dim, 32, format, 150, 7);
      expect_right(kv, make_query(kv, 9, 3, 150, 0));
    }
  }
}

TEST_P(AttentionOfTable, HeadSizesAboveTheFastOnesWork) {
  PagedKvFixture kv(320, 32, KvFormat::kF16, 100, 8);
  expect_right(kv, make_query(kv, 3, 2, 100, 0, 0.2f));
  mix_forms(kv, 0);
  expect_right(kv, make_query(kv, 3, 2, 100, 0, 0.2f));
}

TEST_P(AttentionOfTable, GroupsAboveEight) {
  for (const int group : {9, 12, 16, 25}) {
    PagedKvFixture kv(64, 32, KvFormat::kF16, 140, 9);
    expect_right(kv, make_query(kv, 3, group, 140, 0));
    mix_forms(kv, group);
    expect_right(kv, make_query(kv, 1, group, 140, 0));
  }
}

TEST_P(AttentionOfTable, OldPagesMayBeGone) {
  // A sliding window let pages go: what remains gives the same bits as if they were there.
  constexpr int kTokens = 1500;
  for (const int page_tokens : {16, 32, 64}) {
    PagedKvFixture kv(64, page_tokens, KvFormat::kF16, kTokens, 10);
    if (page_tokens != 16) mix_forms(kv, page_tokens);
    const AttentionQuery query = make_query(kv, 5, 4, kTokens, 100);
    const AttentionResult all = attend(table(), kv, query);
    const int gone = (kTokens - 5 - 100) / page_tokens;
    const AttentionResult rest = attend(table(), kv, query, gone);
    EXPECT_TRUE(same_bits(all.out.data(), rest.out.data(), all.out.size()));
    expect_right(kv, query, gone);
  }
}

TEST_P(AttentionOfTable, PagesMayBePartlyFilledAndPositionsMayJump) {
  PagedKvFixture kv(64, 32, KvFormat::kF16, 600, 11);
  Position next = 0;
  for (std::size_t p = 0; p < kv.pages().size(); ++p) {
    KvPageRef& page = kv.pages()[p];
    page.first_position = next;
    if (p % 3 == 1) page.filled = std::min(page.filled, 1 + static_cast<int>(p) % 31);
    next += page.filled + (p % 4 == 2 ? 40 : 0);
  }
  for (const int rows : {1, 6, 30}) {
    for (const int window : {0, 77}) expect_right(kv, make_query(kv, rows, 3, next, window));
  }
  mix_forms(kv, 0);
  for (const int rows : {1, 4, 30}) {
    for (const int window : {0, 77}) expect_right(kv, make_query(kv, rows, 7, next, window));
  }
}

TEST_P(AttentionOfTable, ThePageSizeDoesNotMatter) {
  constexpr int kTokens = 300, kDims = 64;
  PagedKvFixture kv(kDims, 32, KvFormat::kF16, kTokens, 12);
  for (const int rows : {1, 30}) {
    for (const int window : {0, 77}) {
      const AttentionQuery query = make_query(kv, rows, 7, kTokens, window);
      const AttentionResult want = attend(table(), kv, query);
      for (const int page_tokens : {16, 64}) {
        PagedKvFixture other(kDims, page_tokens, KvFormat::kF16, kTokens, 98);
        // K is [dims][slots], then V [slots][dims], of two bytes each.
        const auto copy = [&](int token, int d, bool value) {
          const auto place = [&](PagedKvFixture& pages) {
            const int slots = pages.layout().page_tokens, slot = token % slots;
            const int at = value ? (slots + slot) * kDims + d : d * slots + slot;
            return pages.pages()[size(token / slots)].base + 2 * at;
          };
          std::memcpy(place(other), place(kv), 2);
        };
        for (int token = 0; token < kTokens; ++token) {
          for (int d = 0; d < kDims; ++d) {
            copy(token, d, false);
            copy(token, d, true);
          }
        }
        const AttentionResult got = attend(table(), other, query);
        EXPECT_TRUE(same_bits(want.out.data(), got.out.data(), want.out.size())) << page_tokens;
        EXPECT_TRUE(same_bits(want.sum.data(), got.sum.data(), want.sum.size())) << page_tokens;
      }
    }
  }
}

TEST_P(AttentionOfTable, AddressesDoNotMatter) {
  constexpr int kTokens = 300;
  PagedKvFixture kv(64, 32, KvFormat::kF16, kTokens, 12);
  const AttentionQuery query = make_query(kv, 4, 7, kTokens, 0);
  const AttentionResult want = attend(table(), kv, query);
  // The same content at other addresses: page p's bytes move to page (p + 3) % n's place.
  PagedKvFixture moved(64, 32, KvFormat::kF16, kTokens, 99);
  for (std::size_t p = 0; p < kv.pages().size(); ++p) {
    std::memcpy(moved.pages()[p].base, kv.pages()[p].base, kv.layout().page_bytes());
  }
  const AttentionResult got = attend(table(), moved, query);
  EXPECT_TRUE(same_bits(want.out.data(), got.out.data(), want.out.size()));
  EXPECT_TRUE(same_bits(want.mass.data(), got.mass.data(), want.mass.size()));
}

TEST_P(AttentionOfTable, WhatUnfilledSlotsHoldDoesNotMatter) {
  constexpr int kTokens = 77;
  PagedKvFixture kv(64, 32, KvFormat::kF16, kTokens, 13);
  const AttentionQuery query = make_query(kv, 1, 3, kTokens, 0);
  const AttentionResult want = attend(table(), kv, query);
  std::uint16_t* half = reinterpret_cast<std::uint16_t*>(kv.pages().back().base);
  for (int d = 0; d < 64; ++d) {
    for (int slot = kTokens - 64; slot < 32; ++slot) {
      half[d * 32 + slot] = 0xfbff;            // K: the lowest half, -65504
      half[64 * 32 + slot * 64 + d] = 0x7bff;  // V: the highest
    }
  }
  const AttentionResult got = attend(table(), kv, query);
  EXPECT_TRUE(same_bits(want.out.data(), got.out.data(), want.out.size()));
}

TEST_P(AttentionOfTable, WhatUnfilledCodesHoldDoesNotMatter) {
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

TEST_P(AttentionOfTable, ExtremeScores) {
  PagedKvFixture kv(64, 32, KvFormat::kF16, 500, 14);
  for (const float amplitude : {1e3f, 1e4f}) {
    const AttentionQuery query = make_query(kv, 3, 3, 500, 0, amplitude);
    const AttentionResult got = attend(table(), kv, query);
    const AttentionResult want = attend(scalar_kernels(), kv, query);
    for (std::size_t i = 0; i < got.out.size(); ++i) {
      // A score near 1e4 carries an error of 1e-3 as a float, and so does the weight.
      ASSERT_NEAR(got.out[i], want.out[i], 1e-2f);
    }
  }
  // All scores equal: the mean of the values.
  AttentionQuery query = make_query(kv, 2, 4, 500, 0);
  std::fill(query.q.begin(), query.q.end(), 0.0f);
  expect_right(kv, query);
  const AttentionResult got = attend(table(), kv, query);
  EXPECT_EQ(got.max[0], 0.0f);
  EXPECT_EQ(got.sum[0], 499.0f);
  EXPECT_EQ(got.sum[4], 500.0f);
}

TEST_P(AttentionOfTable, NothingVisible) {
  PagedKvFixture kv(64, 32, KvFormat::kF16, 200, 15);
  AttentionQuery query = make_query(kv, 2, 3, 200, 0);
  query.positions = {-1, 3};  // the first row comes before every slot
  const AttentionResult got = attend(table(), kv, query);
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(got.max[r], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(got.sum[r], 0.0f);
    EXPECT_EQ(got.mass[r], 0.0f);
  }
  for (std::size_t i = 0; i < 3 * 64; ++i) EXPECT_EQ(got.out[i], 0.0f);
  EXPECT_GT(got.sum[3], 0.9f);
  // No pages at all.
  PagedKvFixture empty(64, 32, KvFormat::kF16, 0, 16);
  const AttentionResult none = attend(table(), empty, query);
  for (const float value : none.out) EXPECT_EQ(value, 0.0f);
}

TEST_P(AttentionOfTable, MergingSkipsEmptySegments) {
  const float kMinusInfinity = -std::numeric_limits<float>::infinity();
  const std::vector<float> max = {2.0f, kMinusInfinity, 3.0f};
  const std::vector<float> sum = {4.0f, 0.0f, 2.0f};
  std::vector<float> partial(3 * 20, 8.0f);
  std::fill_n(partial.begin() + 20, 20, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> out(20), scale(3);
  MergeAttentionArgs args;
  args.segments = 3;
  args.group = 1;
  args.head_dim = 20;
  args.max = max.data();
  args.sum = sum.data();
  args.partial = partial.data();
  args.stat_stride = 1;
  args.out_stride = 20;
  args.out = out.data();
  args.segment_scale = scale.data();
  table().merge_attention(args);
  EXPECT_EQ(scale, (std::vector<float>{0.125f, 0.0f, 0.25f}));
  for (const float value : out) EXPECT_EQ(value, 3.0f);
}

TEST_P(AttentionOfTable, StoreKvMatchesScalarInEveryBit) {
  std::mt19937 random(17);
  std::uniform_real_distribution<float> uniform(-70000.0f, 70000.0f);
  for (const int head_dim : {64, 80, 96, 128, 256, 20, 7}) {
    for (const int page_tokens : {16, 32, 64}) {
      for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
        const KvPageLayout layout{1, 1, head_dim, page_tokens, format};
        for (const int tokens : {1, 3, 8, 9, 16}) {
          const int first = page_tokens - tokens;
          std::vector<float> k(size(tokens * (head_dim + 5))), v = k;
          for (float& x : k) x = uniform(random);
          for (float& x : v) x = uniform(random) * 1e-6f;
          std::vector<std::byte> want(layout.page_bytes()), got = want;
          StoreKvArgs args{&layout,  want.data(), first,        tokens,
                           k.data(), v.data(),    head_dim + 5, head_dim + 5};
          scalar_kernels().store_kv(args);
          args.head = got.data();
          table().store_kv(args);
          ASSERT_EQ(want, got) << head_dim << " " << page_tokens << " " << tokens;
        }
      }
    }
  }
}

TEST(Attention, WideTablesAgreeInEveryBit) {
  // The order of every sum is the same for 8 and for 16 lanes.
  const auto tables = supported_kernels();
  if (tables.size() < 3) GTEST_SKIP() << "needs two vector tables";
  for (const int head_dim : {64, 96, 80}) {
    for (const int page_tokens : {16, 32}) {
      for (const KvFormat format :
           {KvFormat::kF16, KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4}) {
        PagedKvFixture kv(head_dim, page_tokens, format, 1300, 18);
        for (int turn = 0; turn < 2; ++turn) {
          if (turn == 1 && format != KvFormat::kF16) break;
          if (turn == 1) mix_forms(kv, 0);
          for (const int rows : {1, 6}) {
            for (const int window : {0, 300}) {
              const AttentionQuery query = make_query(kv, rows, 7, 1300, window);
              const AttentionResult a = attend(*tables[1], kv, query);
              const AttentionResult b = attend(*tables[2], kv, query);
              EXPECT_TRUE(same_bits(a.out.data(), b.out.data(), a.out.size()));
              EXPECT_TRUE(same_bits(a.mass.data(), b.mass.data(), a.mass.size()));
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionOfTable,
                         testing::ValuesIn(supported_kernels().begin(), supported_kernels().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace memdecay
