// The truth: dequantized weights times activations, summed in double. Slow on purpose.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "kernels/matmul_activations.h"
#include "kernels/scalar/table.h"

#include "kernels/generic/matmul/quantize_columns.h"

namespace memdecay::scalar {
namespace {

void quantize_block(const float* x, std::size_t block, const ActivationColumn& column) {
  std::int8_t* codes = column.codes + block * kActivationBlock;
  float amax = 0;
  for (int i = 0; i < kActivationBlock; ++i) amax = std::max(amax, std::fabs(x[i]));
  const bool zero = !(amax >= kSmallestAmax);
  const float scale = zero ? 0 : amax / 127;
  const float inverse = zero ? 0 : 127 / amax;
  std::int32_t sums[2] = {0, 0};
  for (int i = 0; i < kActivationBlock; ++i) {
    const float rounded = zero ? 0 : std::nearbyint(x[i] * inverse);
    codes[i] = static_cast<std::int8_t>(std::clamp(rounded, -127.0f, 127.0f));
    sums[i / 16] += codes[i];
  }
  column.set_scale(block, scale, sums);
}

void quantize_activations(const QuantizeActivationsArgs& args) {
  quantize_columns(args, quantize_block);
}

/// The activations of [col_begin, col_end) as numbers.
std::vector<double> activation_values(const MatMulArgs& args) {
  const auto k = static_cast<std::size_t>(args.weights->k);
  std::vector<double> values(k * static_cast<std::size_t>(args.col_end - args.col_begin));
  const ActivationLayout layout(args.weights->k);
  double* to = values.data();
  for (int col = args.col_begin; col < args.col_end; ++col, to += k) {
    if (!is_quantized(args.weights->type)) {
      std::copy_n(args.x + col * args.ld_x, k, to);
      continue;
    }
    const ConstActivationColumn column(args.quantized.storage, layout, col);
    for (std::size_t i = 0; i < k; ++i) {
      to[i] = static_cast<double>(column.codes[i]) *
              static_cast<double>(column.scale[i / kActivationBlock]);
    }
  }
  return values;
}

void matmul(const MatMulArgs& args) {
  const PanelMatrix& weights = *args.weights;
  const auto k = static_cast<std::size_t>(weights.k);
  const std::vector<double> activations = activation_values(args);
  std::vector<float> row_values(k);
  const int row_end = std::min(args.panel_end * kPanelRows, weights.rows);
  for (int row = args.panel_begin * kPanelRows; row < row_end; ++row) {
    unpack_row(weights, row, row_values);
    const double* activation = activations.data();
    for (int col = args.col_begin; col < args.col_end; ++col, activation += k) {
      double sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += static_cast<double>(row_values[i]) * activation[i];
      float& out = args.out[col * args.ld_out + row];
      out = static_cast<float>(args.accumulate ? static_cast<double>(out) + sum : sum);
    }
  }
}

}  // namespace

void add_matmul(KernelTable& table) {
  table.activation_bytes = matmul_activation_bytes;
  table.quantize_activations = quantize_activations;
  table.matmul = matmul;
}

}  // namespace memdecay::scalar
