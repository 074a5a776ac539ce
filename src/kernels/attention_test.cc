#include <limits>
#include <random>
#include <string>

#include "kernels/attention_table_fixture.h"

namespace memdecay {
namespace {

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
