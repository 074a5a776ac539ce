// Panels: the native order of weights (design decision D9). A panel is 16 rows; inputs go in groups
// of 4.
//
// Repacking permutes codes and copies scales bit for bit: unpack_row(panel) equals
// dequantize_weights(row), every bit. One 64-byte unit is 16 rows x 4 inputs, which every
// instruction set can load. docs/formats/panels.md gives the byte order of each type. Rows are
// padded to 16 with rows of zeros. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "quant/weight_type.h"

namespace memdecay {

inline constexpr int kPanelRows = 16;

/// A matrix in panels. A view: the bytes belong to whoever repacked them.
struct PanelMatrix {
  WeightType type = WeightType::kF32;
  int rows = 0;                       ///< logical rows (outputs)
  int k = 0;                          ///< inputs, a multiple of the type's block_values
  const std::byte* panels = nullptr;  ///< 64-byte aligned
  std::size_t panel_bytes = 0;        ///< from one panel to the next

  int panel_count() const { return (rows + kPanelRows - 1) / kPanelRows; }
};

/// Whether matmul wants int8 activations (true) or floats (F32, F16, BF16).
bool is_quantized(WeightType type);

/// Bytes of one panel of k inputs: a multiple of 64.
std::size_t panel_bytes(WeightType type, int k);

/// Repacks rows [16 * panel, ...) of a row-major matrix into one panel.
/// `source` holds the whole matrix: rows * weight_row_bytes(type, k) bytes. `out` is
/// panel_bytes(type, k) long.
void repack_panel(WeightType type, int rows, int k, std::span<const std::byte> source, int panel,
                  std::span<std::byte> out);

/// The k values of one row, dequantized from its panel: embeddings lookup, and the test of
/// repacking.
void unpack_row(const PanelMatrix& matrix, int row, std::span<float> out);

}  // namespace memdecay
