// Arguments of the matrix kernels: weights in panels times activations of some tokens.
//
// out[col][row] (+)= sum_k weight[row][k] * activation[col][k], for the rows of panels
// [panel_begin, panel_end). A *panel* is 16 output rows (quant/panel.h); a *column* is one token.
// Quantized weights meet activations quantized to int8 per 32 values; F32, F16 and BF16 weights
// meet float activations.
//
// Determinism: a column's result depends on that column and the weights only, not on how many
// columns, panels or threads share the call: GEMV and GEMM give the same bits. Different tables may
// differ in the last bits. Threads: pure functions of their arguments; callers split panels (and
// columns) among threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/panel.h"

namespace memdecay {

/// Activations of `cols` tokens, quantized by KernelTable::quantize_activations into one buffer.
/// Opaque: each kernel table has its own order inside, and only the table that wrote it may read
/// it.
struct QuantizedActivations {
  int k = 0;                     ///< inputs per column, a multiple of 32
  int cols = 0;                  ///< columns in the buffer
  std::byte* storage = nullptr;  ///< 64-byte aligned, KernelTable::activation_bytes(k, cols) bytes
};

struct QuantizeActivationsArgs {
  const float* x = nullptr;  ///< [cols][ld_x]
  std::ptrdiff_t ld_x = 0;   ///< floats from one column to the next, >= out.k
  int col_begin = 0;
  int col_end = 0;
  QuantizedActivations out;  ///< columns [col_begin, col_end) are written
};

struct MatMulArgs {
  const PanelMatrix* weights = nullptr;
  int panel_begin = 0;
  int panel_end = 0;
  QuantizedActivations quantized;  ///< for panel types with is_quantized(type)
  const float* x = nullptr;        ///< for float panel types: [cols][ld_x]
  std::ptrdiff_t ld_x = 0;
  int col_begin = 0;
  int col_end = 0;
  float* out = nullptr;  ///< [cols][ld_out]; rows past weights->rows are not written
  std::ptrdiff_t ld_out = 0;
  bool accumulate = false;  ///< add to what out holds (bias, residual) instead of overwriting it
};

}  // namespace memdecay
