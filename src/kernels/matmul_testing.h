// Random weights and activations for the tests and benchmarks of matmul. Not part of any library.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "kernels/aligned_bytes.h"
#include "kernels/kernel_table.h"
#include "quant/half.h"
#include "quant/panel.h"
#include "quant/weight_type.h"

namespace memdecay {

/// Where a GGUF block keeps its fp16 scales.
inline std::vector<std::size_t> half_scale_offsets(WeightType type) {
  switch (type) {
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return {0, 2};
    case WeightType::kQ2_K:
      return {80, 82};
    case WeightType::kQ3_K:
      return {108};
    case WeightType::kQ6_K:
      return {208};
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      return {};
    default:
      return {0};
  }
}

/// Every byte from `fill` (random when negative), scales sane, row-major.
inline std::vector<std::byte> test_weights(WeightType type, int rows, int k, int fill,
                                           unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * weight_row_bytes(type, k));
  const std::size_t block_bytes = weight_type_traits(type).block_bytes;
  if (!is_quantized(type)) {
    for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
      const float value = normal(random);
      const std::uint16_t half =
          type == WeightType::kF16 ? float_to_half(value) : float_to_bfloat16(value);
      if (block_bytes == 4) {
        std::memcpy(&bytes[at], &value, 4);
      } else {
        std::memcpy(&bytes[at], &half, 2);
      }
    }
    return bytes;
  }
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(fill < 0 ? random() & 255 : static_cast<unsigned>(fill));
  }
  for (std::size_t at = 0; at < bytes.size(); at += block_bytes) {
    for (const std::size_t offset : half_scale_offsets(type)) {
      const std::uint16_t half = float_to_half(normal(random));
      std::memcpy(&bytes[at + offset], &half, 2);
    }
  }
  return bytes;
}

/// A matrix in panels, with what it was made of.
struct TestMatrix {
  std::vector<std::byte> source;
  AlignedBytes panels;
  PanelMatrix matrix;

  TestMatrix(WeightType type, int rows, int k, std::vector<std::byte> row_major)
      : source(std::move(row_major)),
        panels(static_cast<std::size_t>((rows + kPanelRows - 1) / kPanelRows) *
               panel_bytes(type, k)),
        matrix{type, rows, k, panels.data(), panel_bytes(type, k)} {
    for (int panel = 0; panel < matrix.panel_count(); ++panel) {
      repack_panel(type, rows, k, source, panel,
                   {panels.data() + static_cast<std::size_t>(panel) * matrix.panel_bytes,
                    matrix.panel_bytes});
    }
  }
};

inline std::vector<float> test_activations(int cols, int k, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(cols) * static_cast<std::size_t>(k));
  for (float& value : x) value = normal(random);
  return x;
}

/// Activations of `cols` columns as a table quantizes them.
struct TestActivations {
  std::vector<float> x;
  AlignedBytes storage;
  QuantizedActivations quantized;

  TestActivations(const KernelTable& table, int cols, int k, std::vector<float> values)
      : x(std::move(values)),
        storage(table.activation_bytes(k, cols)),
        quantized{k, cols, storage.data()} {
    if (k % 32 == 0) table.quantize_activations({x.data(), k, 0, cols, quantized});
  }
};

inline MatMulArgs matmul_args(const TestMatrix& weights, const TestActivations& activations,
                              float* out, std::ptrdiff_t ld_out) {
  MatMulArgs args;
  args.weights = &weights.matrix;
  args.panel_end = weights.matrix.panel_count();
  args.quantized = activations.quantized;
  args.x = activations.x.data();
  args.ld_x = weights.matrix.k;
  args.col_end = activations.quantized.cols;
  args.out = out;
  args.ld_out = ld_out;
  return args;
}

}  // namespace memdecay
