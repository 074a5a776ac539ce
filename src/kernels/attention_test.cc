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
  const auto begin = query.q.begin() + row * query.group * head_dim;
  one.q.assign(begin, begin + query.group * head_dim);
  one.positions = {query.positions[size(row)]};
  return one;
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
    ASSERT_LE(nmse(got.out, want), 1e-10);
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
  }
}

TEST_P(AttentionOfTable, HeadSizesAboveTheFastOnesWork) {
  PagedKvFixture kv(320, 32, KvFormat::kF16, 100, 8);
  expect_right(kv, make_query(kv, 3, 2, 100, 0, 0.2f));
}

TEST_P(AttentionOfTable, GroupsAboveEight) {
  for (const int group : {9, 12, 16, 25}) {
    PagedKvFixture kv(64, 32, KvFormat::kF16, 140, 9);
    expect_right(kv, make_query(kv, 3, group, 140, 0));
  }
}

TEST_P(AttentionOfTable, OldPagesMayBeGone) {
  // A sliding window let pages go: what remains gives the same bits as if they were there.
  constexpr int kTokens = 1500;
  for (const int page_tokens : {16, 32, 64}) {
    PagedKvFixture kv(64, page_tokens, KvFormat::kF16, kTokens, 10);
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
}

TEST_P(AttentionOfTable, AddressesAndPageSizeDoNotMatter) {
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
  PagedKvFixture kv(96, 32, KvFormat::kF16, 1300, 18);
  const AttentionQuery query = make_query(kv, 6, 7, 1300, 0);
  const AttentionResult a = attend(*tables[1], kv, query);
  const AttentionResult b = attend(*tables[2], kv, query);
  EXPECT_TRUE(same_bits(a.out.data(), b.out.data(), a.out.size()));
  EXPECT_TRUE(same_bits(a.mass.data(), b.mass.data(), a.mass.size()));
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionOfTable,
                         testing::ValuesIn(supported_kernels().begin(), supported_kernels().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace memdecay
