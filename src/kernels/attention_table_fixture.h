// What tests of attention hold every kernel table to: the truth in double, masses that add up, and
// the same bits for rows taken together and one by one. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/attention_fixture.h"

namespace memdecay {

inline std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

/// Relative squared error of a result.
inline double nmse(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0, power = 1e-30;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - want[i], 2);
    power += want[i] * want[i];
  }
  return error / power;
}

inline bool same_bits(const float* a, const float* b, std::size_t n) {
  return std::memcmp(a, b, n * sizeof(float)) == 0;
}

inline AttentionQuery make_query(PagedKvFixture& kv, int rows, int group, int tokens, int window,
                                 float amplitude = 1.0f) {
  AttentionQuery query;
  query.group = group;
  query.window = window;
  query.q = kv.random_floats(size(rows * group * kv.layout().head_dim), amplitude);
  for (int row = 0; row < rows; ++row) query.positions.push_back(tokens - rows + row);
  return query;
}

/// The same query, one row.
inline AttentionQuery row_of(const AttentionQuery& query, int row, int head_dim) {
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

inline constexpr KvFormat kQuantized[] = {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4};

/// Turns fp16 pages into pages of all forms, in an order that mixes every tile.
inline void mix_forms(PagedKvFixture& kv, int seed) {
  constexpr KvFormat kForms[] = {KvFormat::kF16, KvFormat::kInt4, KvFormat::kInt8, KvFormat::kInt8,
                                 KvFormat::kK8V4};
  for (int p = 0; p < kv.page_count(); ++p) kv.convert(p, kForms[(p * 7 + seed) % 5]);
}

/// What a result may differ from the truth by: codes meet factors of 16 bits.
inline double tolerance(PagedKvFixture& kv) {
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

}  // namespace memdecay
