#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"

namespace memdecay {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

class ElementwiseOfTable : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }

  std::vector<float> floats(int n, float amplitude) {
    std::uniform_real_distribution<float> uniform(-amplitude, amplitude);
    std::vector<float> x(size(n));
    for (float& value : x) value = uniform(random_);
    return x;
  }

  /// 2^x as attention computes it: the weight of a second slot whose score is x below the first's.
  std::vector<float> exp2_by_attention(const std::vector<float>& x) {
    const KvPageLayout layout{1, 1, 64, 16, KvFormat::kF32};
    std::vector<float> page(layout.page_bytes() / sizeof(float), 0.0f);
    page[1] = 1.0f;  // K[0][slot 1]
    const KvPageRef ref{reinterpret_cast<std::byte*>(page.data()), 0, 2, layout.format};
    std::vector<float> result;
    const Position position = 1;
    std::vector<std::byte> storage(table().attention_scratch_bytes(layout, 1, 1) + 64);
    std::vector<float> q(64, 0.0f), out(64);
    float max = 0, sum = 0;
    // V of slot 1 is 1 in dimension 0: out[0] is its weight.
    page[64 * 16 + 64] = 1.0f;
    AttentionArgs args;
    args.layout = &layout;
    args.pages = &ref;
    args.page_count = 1;
    args.q = q.data();
    args.q_stride = 64;
    args.positions = &position;
    args.rows = 1;
    args.group = 1;
    args.max = &max;
    args.sum = &sum;
    args.out = out.data();
    args.scratch = storage.data() + 64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64;
    for (const float value : x) {
      q[0] = value;
      table().attention(args);
      result.push_back(out[0]);
    }
    return result;
  }

  std::mt19937 random_{1};
};

TEST_P(ElementwiseOfTable, Exp2IsAccurateMonotoneAndExactAtWholeNumbers) {
  std::vector<float> x = {-0.0f};
  for (int i = 1; i <= 4000; ++i) x.push_back(-126.0f * static_cast<float>(i) / 4000.0f);
  for (int n = 0; n < 126; ++n) {
    // Where the polynomial's pieces meet, and just around whole numbers.
    const float half = -static_cast<float>(n) - 0.5f;
    for (const float at : {half, -static_cast<float>(n)}) {
      x.push_back(at);
      x.push_back(std::nextafter(at, -kInfinity));
      if (at < 0) x.push_back(std::nextafter(at, kInfinity));
    }
  }
  std::sort(x.begin(), x.end());
  const std::vector<float> y = exp2_by_attention(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp2(static_cast<double>(x[i]));
    if (want < static_cast<double>(std::numeric_limits<float>::min())) continue;
    ASSERT_NEAR(static_cast<double>(y[i]) / want, 1.0, 4e-7) << x[i];
    if (i > 0) {
      ASSERT_GE(y[i], y[i - 1]) << x[i];
    }
    if (x[i] == std::trunc(x[i])) {
      ASSERT_EQ(static_cast<double>(y[i]), want) << x[i];
    }
  }
  const std::vector<float> tiny = exp2_by_attention({-1000.0f, -1e30f});
  EXPECT_EQ(tiny[0], 0.0f);
  EXPECT_EQ(tiny[1], 0.0f);
}

TEST_P(ElementwiseOfTable, RmsNorm) {
  for (const int n : {1, 2, 7, 8, 15, 16, 17, 31, 64, 100, 576, 896, 1536, 4095}) {
    const std::vector<float> x = floats(n, 3.0f);
    const std::vector<float> weight = floats(n, 1.0f);
    std::vector<float> out(size(n) + 1, 7.0f);
    table().rms_norm({x.data(), weight.data(), out.data(), n, 1e-6f});
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
    const double scale = 1.0 / std::sqrt(squares / n + 1e-6);
    for (std::size_t i = 0; i < size(n); ++i) {
      const double want = static_cast<double>(x[i]) * scale * static_cast<double>(weight[i]);
      ASSERT_NEAR(static_cast<double>(out[i]), want, 1e-6 * (std::abs(want) + 1e-3));
    }
    EXPECT_EQ(out[size(n)], 7.0f);
    std::vector<float> in_place = x;
    table().rms_norm({in_place.data(), weight.data(), in_place.data(), n, 1e-6f});
    EXPECT_EQ(std::memcmp(in_place.data(), out.data(), size(n) * sizeof(float)), 0);
  }
}

TEST_P(ElementwiseOfTable, RopeTurnsBothPairingsUpToTheLongestContext) {
  for (const RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalves}) {
    for (const int pairs : {1, 3, 8, 16, 20, 32, 40, 64, 128}) {
      for (const int position : {0, 1, 4095, 131072}) {
        const int head_dim = 2 * pairs + (pairs % 3);
        constexpr int kHeads = 3;
        std::vector<float> x = floats(kHeads * head_dim, 2.0f);
        std::vector<float> cos(size(pairs)), sin(size(pairs));
        std::vector<double> angle(size(pairs));
        for (int i = 0; i < pairs; ++i) {
          angle[size(i)] = position * std::pow(10000.0, -static_cast<double>(i) / pairs);
          cos[size(i)] = static_cast<float>(std::cos(angle[size(i)]));
          sin[size(i)] = static_cast<float>(std::sin(angle[size(i)]));
        }
        const std::vector<float> before = x;
        table().rope({x.data(), kHeads, head_dim, pairs, pairing, cos.data(), sin.data(), 0.25f});
        for (int head = 0; head < kHeads; ++head) {
          const std::size_t base = size(head * head_dim);
          for (int i = 0; i < pairs; ++i) {
            const bool halves = pairing == RopePairing::kHalves;
            const std::size_t first = base + size(halves ? i : 2 * i);
            const std::size_t second = base + size(halves ? i + pairs : 2 * i + 1);
            const double a = static_cast<double>(before[first]);
            const double b = static_cast<double>(before[second]);
            const double c = std::cos(angle[size(i)]), s = std::sin(angle[size(i)]);
            ASSERT_NEAR(static_cast<double>(x[first]), 0.25 * (a * c - b * s), 3e-7);
            ASSERT_NEAR(static_cast<double>(x[second]), 0.25 * (a * s + b * c), 3e-7);
          }
          for (int i = 2 * pairs; i < head_dim; ++i) {
            ASSERT_EQ(x[base + size(i)], before[base + size(i)] * 0.25f);
          }
        }
      }
    }
  }
}

double gelu_truth(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

TEST_P(ElementwiseOfTable, GatesMatchTheTruth) {
  for (const int n : {1, 5, 8, 16, 17, 1000}) {
    const std::vector<float> gate = floats(n, 12.0f);
    const std::vector<float> up = floats(n, 2.0f);
    std::vector<float> silu(size(n) + 1, 7.0f), gelu = silu;
    table().swiglu({gate.data(), up.data(), silu.data(), size(n)});
    table().geglu({gate.data(), up.data(), gelu.data(), size(n)});
    for (std::size_t i = 0; i < size(n); ++i) {
      const double x = static_cast<double>(gate[i]), u = static_cast<double>(up[i]);
      const double want_silu = x / (1 + std::exp(-x)) * u;
      const double want_gelu = gelu_truth(x) * u;
      ASSERT_NEAR(static_cast<double>(silu[i]), want_silu, 1e-6 * std::abs(want_silu) + 1e-30);
      // The exponent reaches about 100 and is itself a rounded float.
      const double tolerance = x > -3 ? 1e-6 : 4e-6 * (1 + x * x);
      ASSERT_NEAR(static_cast<double>(gelu[i]), want_gelu, tolerance * std::abs(want_gelu) + 1e-30)
          << x;
    }
    EXPECT_EQ(silu[size(n)], 7.0f);
    EXPECT_EQ(gelu[size(n)], 7.0f);
  }
}

TEST_P(ElementwiseOfTable, GatesAtTheExtremes) {
  const std::vector<float> gate = {0.0f,   -0.0f, 1e4f, -1e4f, 1e30f,
                                   -1e30f, kNan,  1.0f, 88.0f, -88.0f};
  const std::vector<float> up = {1, 1, 2, 2, 1, 1, 1, kNan, 1, 1};
  std::vector<float> silu(gate.size()), gelu(gate.size());
  table().swiglu({gate.data(), up.data(), silu.data(), gate.size()});
  table().geglu({gate.data(), up.data(), gelu.data(), gate.size()});
  for (const std::vector<float>& out : {silu, gelu}) {
    EXPECT_EQ(out[0], 0.0f);
    EXPECT_EQ(out[1], 0.0f);
    EXPECT_EQ(out[2], 2e4f);
    EXPECT_NEAR(out[3], 0.0f, 1e-30f);
    EXPECT_EQ(out[4], 1e30f);
    EXPECT_NEAR(out[5], 0.0f, 1e-6f);
    EXPECT_TRUE(std::isnan(out[6]));
    EXPECT_TRUE(std::isnan(out[7]));
    EXPECT_EQ(out[8], 88.0f);
    EXPECT_NEAR(out[9], 0.0f, 1e-30f);
  }
}

TEST_P(ElementwiseOfTable, MaxValueAndSumExp) {
  for (const int n : {1, 3, 8, 17, 64, 129, 5000, 151936}) {
    std::vector<float> x = floats(n, 20.0f);
    const float max = *std::max_element(x.begin(), x.end());
    EXPECT_EQ(table().max_value(x.data(), n), max);
    double sum = 0;
    for (const float value : x)
      sum += std::exp(static_cast<double>(value) - static_cast<double>(max));
    EXPECT_NEAR(table().sum_exp(x.data(), n, max) / sum, 1.0, 1e-6);
    // A NaN counts as minus infinity, wherever it stands.
    x[0] = kNan;
    x[size(n / 2)] = kNan;
    x[size(n - 1)] = kNan;
    float rest = -kInfinity;
    for (const float value : x) rest = value > rest ? value : rest;
    EXPECT_EQ(table().max_value(x.data(), n), rest);
    EXPECT_FALSE(std::isnan(table().sum_exp(x.data(), n, max)));
  }
  const std::vector<float> equal(1000, -3.5f);
  EXPECT_EQ(table().sum_exp(equal.data(), 1000, -3.5f), 1000.0);
}

TEST_P(ElementwiseOfTable, ReadStreamsReadsEveryFloat) {
  for (const int n : {64, 192, 4096}) {
    for (const int at : {0, n / 4 - 1, n / 2, n - 1}) {
      std::vector<float> x(size(n), 1.0f);
      x[size(at)] = 2.0f;
      EXPECT_EQ(table().read_streams(x.data(), size(n)), 2.0f) << n << " " << at;
    }
  }
}

void expect_top_k(const KernelTable& table, const std::vector<float>& x, int k) {
  std::vector<std::int32_t> order(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  const auto rank = [&](std::int32_t i) {
    const float value = x[static_cast<std::size_t>(i)];
    return std::isnan(value) ? -kInfinity : value;
  };
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      return rank(a) > rank(b) || (rank(a) == rank(b) && a < b);
                    });
  std::vector<std::int32_t> index(size(k), -1);
  std::vector<float> value(size(k), kNan);
  table.top_k({x.data(), static_cast<int>(x.size()), k, index.data(), value.data()});
  for (int i = 0; i < k; ++i) {
    ASSERT_EQ(index[size(i)], order[size(i)]) << "place " << i << " of " << k;
    ASSERT_EQ(value[size(i)], rank(order[size(i)]));
  }
}

TEST_P(ElementwiseOfTable, TopKMatchesASort) {
  for (const int n : {1, 2, 9, 16, 33, 1000, 49152}) {
    for (const int k : {1, 2, 7, 40, 300}) {
      if (k > n) continue;
      std::vector<float> x = floats(n, 10.0f);
      expect_top_k(table(), x, k);
      for (float& value : x) value = std::round(value);  // many ties
      expect_top_k(table(), x, k);
      std::sort(x.begin(), x.end());
      expect_top_k(table(), x, k);
      std::reverse(x.begin(), x.end());
      expect_top_k(table(), x, k);
      for (std::size_t i = 0; i < x.size(); i += 3) x[i] = kNan;
      x[x.size() / 2] = kInfinity;
      expect_top_k(table(), x, k);
      std::fill(x.begin(), x.end(), kNan);
      expect_top_k(table(), x, k);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, ElementwiseOfTable,
                         testing::ValuesIn(supported_kernels().begin(), supported_kernels().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace memdecay
