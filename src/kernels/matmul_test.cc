#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/matmul_activations.h"
#include "kernels/matmul_testing.h"

namespace memdecay {
namespace {

constexpr float kUntouched = -12345.5f;

struct Shape {
  int rows, k, cols;
};

/// What a column means, as the scalar table quantizes it.
std::vector<double> activation_meaning(const TestActivations& activations, WeightType type,
                                       int col) {
  const int k = activations.quantized.k;
  std::vector<double> y(static_cast<std::size_t>(k));
  const ConstActivationColumn column(activations.quantized.storage, ActivationLayout(k), col);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = is_quantized(type)
               ? static_cast<double>(column.codes[i]) * static_cast<double>(column.scale[i / 32])
               : static_cast<double>(activations.x[static_cast<std::size_t>(col * k) + i]);
  }
  return y;
}

/// Checks `out` against sums in double straight from the GGUF bytes and the same activations.
void expect_near_truth(const KernelTable& table, const TestMatrix& weights, const Shape& shape,
                       const TestActivations& activations, const std::vector<float>& out) {
  const WeightType type = weights.matrix.type;
  const std::size_t row_bytes = weight_row_bytes(type, shape.k);
  std::vector<std::vector<double>> columns;
  for (int col = 0; col < shape.cols; ++col) {
    columns.push_back(activation_meaning(activations, type, col));
  }
  std::vector<float> w(static_cast<std::size_t>(shape.k));
  for (int row = 0; row < shape.rows; ++row) {
    dequantize_weights(
        type,
        std::span(weights.source).subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes), w);
    double largest = 0;
    for (const float value : w) largest = std::max(largest, std::fabs(static_cast<double>(value)));
    for (int col = 0; col < shape.cols; ++col) {
      const std::vector<double>& y = columns[static_cast<std::size_t>(col)];
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        sum += static_cast<double>(w[i]) * y[i];
        magnitude += largest * std::fabs(y[i]);
      }
      const double bound = (shape.k / 32 + 8) * 0x1p-24 * 2 * magnitude + 1e-30;
      ASSERT_NEAR(static_cast<double>(out[static_cast<std::size_t>(col * shape.rows + row)]), sum,
                  bound)
          << table.name << " " << weight_type_traits(type).name << " k " << shape.k << " rows "
          << shape.rows << " cols " << shape.cols << " row " << row << " col " << col;
    }
  }
}

void check(const KernelTable& table, WeightType type, const Shape& shape, int fill) {
  const TestMatrix weights(type, shape.rows, shape.k,
                           test_weights(type, shape.rows, shape.k, fill, 7));
  std::vector<float> x = test_activations(shape.cols, shape.k, 11);
  if (fill >= 0) {  // every code at +-127, where sums are largest
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i / 64 % 3 == 0 ? -1.0f : 1.0f;
  }
  const TestActivations activations(table, shape.cols, shape.k, std::move(x));
  std::vector<float> out(static_cast<std::size_t>(shape.rows * shape.cols), kUntouched);
  table.matmul(matmul_args(weights, activations, out.data(), shape.rows));
  expect_near_truth(table, weights, shape, activations, out);
}

class MatMul : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
};

TEST_P(MatMul, EqualsTheTruthForEveryTypeAndShape) {
  constexpr std::array<std::array<int, 2>, 11> kRowsCols = {{{5, 1},
                                                             {80, 1},
                                                             {17, 2},
                                                             {33, 3},
                                                             {16, 4},
                                                             {17, 5},
                                                             {40, 6},
                                                             {17, 7},
                                                             {16, 9},
                                                             {5, 31},
                                                             {17, 64}}};
  for (const WeightTypeTraits& traits : weight_types()) {
    for (const int k : {32, 64, 96, 256, 576, 896, 1536, 4864}) {
      if (k % traits.block_values != 0) continue;
      for (const auto& [rows, cols] : kRowsCols) {
        if (k > 600 && cols > 7) continue;
        check(table(), traits.type, {rows, k, cols}, -1);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(MatMul, ExtremeCodesDoNotOverflow) {
  for (const WeightTypeTraits& traits : weight_types()) {
    for (const int fill : {0x00, 0xff, 0x80, 0x7f, 0x0f, 0xf0, 0x81}) {
      for (const int cols : {1, 7}) check(table(), traits.type, {16, 512, cols}, fill);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(MatMul, FloatActivationsAreNear) {
  constexpr Shape kShape = {64, 1536, 8};
  for (const WeightTypeTraits& traits : weight_types()) {
    const TestMatrix weights(traits.type, kShape.rows, kShape.k,
                             test_weights(traits.type, kShape.rows, kShape.k, -1, 3));
    const TestActivations activations(table(), kShape.cols, kShape.k,
                                      test_activations(kShape.cols, kShape.k, 5));
    std::vector<float> out(static_cast<std::size_t>(kShape.rows * kShape.cols));
    table().matmul(matmul_args(weights, activations, out.data(), kShape.rows));
    double error = 0, power = 0;
    std::vector<float> w(static_cast<std::size_t>(kShape.k));
    for (int row = 0; row < kShape.rows; ++row) {
      unpack_row(weights.matrix, row, w);
      for (int col = 0; col < kShape.cols; ++col) {
        double sum = 0;
        for (std::size_t i = 0; i < w.size(); ++i) {
          sum += static_cast<double>(w[i]) *
                 static_cast<double>(activations.x[static_cast<std::size_t>(col * kShape.k) + i]);
        }
        const double delta =
            static_cast<double>(out[static_cast<std::size_t>(col * kShape.rows + row)]) - sum;
        error += delta * delta;
        power += sum * sum;
      }
    }
    EXPECT_LE(error / power, is_quantized(traits.type) ? 2e-4 : 1e-12) << traits.name;
    RecordProperty("nmse_" + std::string(traits.name), std::to_string(error / power));
  }
}

TEST_P(MatMul, AColumnHasTheSameBitsHoweverManyShareTheCall) {
  for (const WeightTypeTraits& traits : weight_types()) {
    for (const int k : {64, 1280, 4864}) {
      if (k % traits.block_values != 0) continue;
      constexpr int kRows = 104, kCols = 300;
      const bool scalar = &table() == &scalar_kernels();
      if (scalar && k > 100) continue;  // slow, and one loop for all shapes
      const int cols = k == 1280 ? kCols : 20;
      const TestMatrix weights(traits.type, kRows, k, test_weights(traits.type, kRows, k, -1, 13));
      const TestActivations activations(table(), cols, k, test_activations(cols, k, 17));
      std::vector<float> all(static_cast<std::size_t>(kRows * cols));
      table().matmul(matmul_args(weights, activations, all.data(), kRows));
      for (const int width : {1, 2, 3, 5, 8, 13}) {
        std::vector<float> some(all.size(), kUntouched);
        MatMulArgs args = matmul_args(weights, activations, some.data(), kRows);
        for (int begin = 0; begin < cols; begin += width) {
          args.col_begin = begin;
          args.col_end = std::min(cols, begin + width);
          const int cut = begin % args.weights->panel_count();  // and two callers share the panels
          args.panel_begin = 0;
          args.panel_end = cut;
          table().matmul(args);
          args.panel_begin = cut;
          args.panel_end = args.weights->panel_count();
          table().matmul(args);
        }
        ASSERT_EQ(std::memcmp(all.data(), some.data(), all.size() * sizeof(float)), 0)
            << traits.name << " k " << k << " width " << width;
      }
    }
  }
}

TEST_P(MatMul, AccumulatesAndLeavesTheRestAlone) {
  for (const WeightTypeTraits& traits : weight_types()) {
    for (const int cols : {1, 3, 20}) {
      constexpr int kRows = 37, kStride = 50, kK = 256;
      const TestMatrix weights(traits.type, kRows, kK, test_weights(traits.type, kRows, kK, -1, 1));
      const TestActivations activations(table(), cols, kK, test_activations(cols, kK, 2));
      std::vector<float> plain(static_cast<std::size_t>(kStride * cols), kUntouched);
      std::vector<float> added(plain.size(), 0.75f);
      MatMulArgs args = matmul_args(weights, activations, plain.data(), kStride);
      table().matmul(args);
      args.out = added.data();
      args.accumulate = true;
      table().matmul(args);
      for (std::size_t i = 0; i < plain.size(); ++i) {
        if (i % kStride < kRows) {
          ASSERT_NEAR(added[i], plain[i] + 0.75f, 1e-6f + 1e-6f * std::fabs(plain[i]))
              << traits.name;
        } else {
          ASSERT_EQ(plain[i], kUntouched);
          ASSERT_EQ(added[i], 0.75f);
        }
      }
    }
  }
}

TEST_P(MatMul, QuantizesActivationsAsTheScalarTableDoes) {
  for (const int k : {32, 64, 96, 576, 4864}) {
    constexpr int kCols = 3;
    std::vector<float> x = test_activations(kCols, k, 23);
    std::fill_n(x.begin(), 32, 0.0f);
    x[static_cast<std::size_t>(k)] = 1e20f;
    if (k > 64) {
      for (std::size_t i = 32; i < 64; ++i) x[i] = i % 2 == 0 ? 1e-38f : -1e-40f;
      for (std::size_t i = 64; i < 96; ++i) {  // ties: multiples of a half
        x[i] = static_cast<float>(i) - 79.5f;
      }
      x[64] = 127.0f;
    }
    const TestActivations expected(scalar_kernels(), kCols, k, x);
    const TestActivations actual(table(), kCols, k, x);
    ASSERT_EQ(std::memcmp(expected.storage.data(), actual.storage.data(), actual.storage.size()), 0)
        << k;
    const ConstActivationColumn column(expected.quantized.storage, ActivationLayout(k), 0);
    EXPECT_EQ(column.scale[0], 0.0f);
    if (k > 64) {
      EXPECT_EQ(column.scale[1], 0.0f);
      EXPECT_EQ(column.scale[2], 1.0f);
      EXPECT_EQ(column.codes[65], -14);  // -14.5 to even
      EXPECT_EQ(column.codes[66], -14);  // -13.5 to even
    }
  }
}

TEST_P(MatMul, QuantizesOnlyTheColumnsAskedFor) {
  constexpr int kK = 64, kCols = 4;
  const std::vector<float> x = test_activations(kCols, kK, 29);
  const TestActivations all(table(), kCols, kK, x);
  AlignedBytes storage(table().activation_bytes(kK, kCols));
  const QuantizedActivations out{kK, kCols, storage.data()};
  table().quantize_activations({x.data(), kK, 1, 3, out});
  const std::size_t bytes = ActivationLayout(kK).column_bytes;
  EXPECT_EQ(std::memcmp(storage.data() + bytes, all.storage.data() + bytes, 2 * bytes), 0);
  for (std::size_t i = 0; i < bytes; ++i) {
    ASSERT_EQ(storage.data()[i], std::byte{0});
    ASSERT_EQ(storage.data()[3 * bytes + i], std::byte{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, MatMul,
                         ::testing::ValuesIn(supported_kernels().begin(),
                                             supported_kernels().end()),
                         [](const auto& tested) { return std::string(tested.param->name); });

}  // namespace
}  // namespace memdecay
