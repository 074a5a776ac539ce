#if !defined(__clang__)
// GCC 12 takes undefined operands inside intrinsics for a mistake (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <algorithm>

#include "core/check.h"
#include "kernels/avx512/matmul_float.h"
#include "kernels/avx512/matmul_stream.h"
#include "kernels/avx512/matmul_tile.h"
#include "kernels/avx512/table.h"
#include "kernels/matmul_activations.h"

#include "kernels/target_avx512.h"

namespace memdecay::avx512 {
namespace {

/// Columns that share one unpacking of a panel.
constexpr int kColumnBlock = 252;
static_assert(kColumnBlock % kTileColumns == 0 && kColumnBlock % kFloatTileColumns == 0);
constexpr int kStreams = 4;

// ---- activations ----

void quantize_block(const float* x, std::size_t block, const ActivationColumn& column) {
  const __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);
  const float amax = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(x0), _mm512_abs_ps(x1)));
  const bool zero = !(amax >= kSmallestAmax);
  const float scale = zero ? 0 : amax / 127;
  const __m512 inverse = _mm512_set1_ps(zero ? 0 : 127 / amax);
  const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, inverse));
  const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, inverse));
  std::int8_t* codes = column.codes + block * kActivationBlock;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(q0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + 16), _mm512_cvtepi32_epi8(q1));
  const std::int32_t sums[2] = {_mm512_reduce_add_epi32(q0), _mm512_reduce_add_epi32(q1)};
  const std::int32_t sum = sums[0] + sums[1];
  column.scale[block] = scale;
  column.offset[block] = -128 * sum;
  column.scaled_sum[block] = scale * static_cast<float>(sum);
  column.offset_16[2 * block] = -128 * sums[0];
  column.offset_16[2 * block + 1] = -128 * sums[1];
  column.scaled_sum_16[2 * block] = scale * static_cast<float>(sums[0]);
  column.scaled_sum_16[2 * block + 1] = scale * static_cast<float>(sums[1]);
}

void quantize_activations(const QuantizeActivationsArgs& args) {
  const ActivationLayout layout(args.out.k);
  MEMDECAY_DCHECK(args.out.k % kActivationBlock == 0);
  const auto blocks = static_cast<std::size_t>(args.out.k / kActivationBlock);
  constexpr float kZeros[kActivationBlock] = {};
  for (int col = args.col_begin; col < args.col_end; ++col) {
    const ActivationColumn column(args.out.storage, layout, col);
    const float* x = args.x + col * args.ld_x;
    for (std::size_t b = 0; b < blocks; ++b) quantize_block(x + b * kActivationBlock, b, column);
    if (blocks < layout.blocks) quantize_block(kZeros, blocks, column);
  }
}

// ---- results ----

/// Writes or adds 16 rows of one column, without touching rows past the matrix.
MEMDECAY_INLINE void write_rows(const MatMulArgs& args, int panel, int col, __m512 values) {
  const int row = panel * kPanelRows;
  const int present = std::min(kPanelRows, args.weights->rows - row);
  const auto mask = static_cast<__mmask16>((1u << present) - 1);
  float* out = args.out + col * args.ld_out + row;
  if (args.accumulate) values = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), values);
  _mm512_mask_storeu_ps(out, mask, values);
}

/// Sums of a block of columns while the inputs pass by.
struct Totals {
  alignas(64) float sums[kTilePanels][kColumnBlock * kPanelRows];
};

void write_totals(const MatMulArgs& args, int panel, int panels, int col, int cols,
                  const Totals& totals) {
  for (int c = 0; c < cols; ++c) {
    for (int p = 0; p < panels; ++p) {
      write_rows(args, panel + p, col + c, _mm512_load_ps(totals.sums[p] + c * kPanelRows));
    }
  }
}

const std::byte* panel_at(const PanelMatrix& weights, int panel) {
  return weights.panels + static_cast<std::size_t>(panel) * weights.panel_bytes;
}

// ---- quantized weights ----

template <class T>
MEMDECAY_NOINLINE void matmul_column(const MatMulArgs& args) {
  const PanelMatrix& weights = *args.weights;
  const ActivationLayout layout(weights.k);
  const ConstActivationColumn y(args.quantized.storage, layout, args.col_begin);
  const std::size_t chunks = (static_cast<std::size_t>(weights.k) + T::kChunkInputs - 1) /
                             static_cast<std::size_t>(T::kChunkInputs);
  const bool fetch = fetching_ahead_pays();
  int panel = args.panel_begin;
  __m512 sums[kStreams];
  // Four distant streams: panel i of each quarter of the range.
  const int quarter = (args.panel_end - args.panel_begin) / kStreams;
  const std::size_t quarter_bytes = static_cast<std::size_t>(quarter) * weights.panel_bytes;
  for (int i = 0; i < quarter; ++i, ++panel) {
    stream_column<T, kStreams>(panel_at(weights, panel), quarter_bytes, chunks, y, fetch, sums);
    for (int p = 0; p < kStreams; ++p)
      write_rows(args, panel + p * quarter, args.col_begin, sums[p]);
  }
  for (panel = args.panel_begin + kStreams * quarter; panel < args.panel_end; ++panel) {
    stream_column<T, 1>(panel_at(weights, panel), 0, chunks, y, fetch, sums);
    write_rows(args, panel, args.col_begin, sums[0]);
  }
}

template <class T, int kPanels, int kColumns = kTileColumns>
MEMDECAY_INLINE void dispatch_tile(int cols, const UnpackedPanel* panels,
                                   const TileColumns& columns, int blocks, float* const* out,
                                   bool first) {
  if constexpr (kColumns > 0) {
    if (cols >= kColumns) {
      tile<T::kSubBlocks, T::kHasMin, kPanels, kColumns>(panels, columns, blocks, out, first);
    } else {
      dispatch_tile<T, kPanels, kColumns - 1>(cols, panels, columns, blocks, out, first);
    }
  }
}

TileColumns tile_columns(const ConstActivationColumn& column, std::size_t block, int sub_blocks,
                         std::size_t stride) {
  const std::size_t sub = block * static_cast<std::size_t>(sub_blocks);
  return {column.codes + block * kActivationBlock, column.scale + block,
          (sub_blocks == 1 ? column.offset : column.offset_16) + sub,
          (sub_blocks == 1 ? column.scaled_sum : column.scaled_sum_16) + sub,
          static_cast<std::ptrdiff_t>(stride)};
}

template <class T, int kPanels>
MEMDECAY_NOINLINE void matmul_panels(const MatMulArgs& args, int panel, int col, int cols) {
  const PanelMatrix& weights = *args.weights;
  const ActivationLayout layout(weights.k);
  UnpackedPanel unpacked[extent(kPanels)];
  Totals totals;
  constexpr std::size_t kChunkBlocks = T::kChunkInputs / kActivationBlock;
  const std::size_t all_blocks =
      (static_cast<std::size_t>(weights.k / kActivationBlock) + kChunkBlocks - 1) / kChunkBlocks *
      kChunkBlocks;
  for (std::size_t block = 0; block < all_blocks; block += kTileBlocks) {
    const std::size_t blocks = std::min<std::size_t>(kTileBlocks, all_blocks - block);
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* chunk = panel_at(weights, panel + p) + block / kChunkBlocks * T::kChunkBytes;
      const std::byte* next = block + kTileBlocks < all_blocks
                                  ? chunk + kTileBlocks / kChunkBlocks * T::kChunkBytes
                                  : panel_at(weights, panel + kPanels + p);
      unpack_panel<T>(chunk, blocks / kChunkBlocks, next, unpacked[p]);
    }
    for (int c = 0; c < cols; c += kTileColumns) {
      const ConstActivationColumn column(args.quantized.storage, layout, col + c);
      float* out[extent(kPanels)];
      for (int p = 0; p < kPanels; ++p) out[p] = totals.sums[p] + c * kPanelRows;
      dispatch_tile<T, kPanels>(cols - c, unpacked,
                                tile_columns(column, block, T::kSubBlocks, layout.column_bytes),
                                static_cast<int>(blocks), out, block == 0);
    }
  }
  write_totals(args, panel, kPanels, col, cols, totals);
}

template <class T>
void matmul_quantized(const MatMulArgs& args) {
  if (args.col_end - args.col_begin == 1) return matmul_column<T>(args);
  for (int col = args.col_begin; col < args.col_end; col += kColumnBlock) {
    const int cols = std::min(kColumnBlock, args.col_end - col);
    int panel = args.panel_begin;
    for (; panel + kTilePanels <= args.panel_end; panel += kTilePanels) {
      matmul_panels<T, kTilePanels>(args, panel, col, cols);
    }
    if (panel < args.panel_end) matmul_panels<T, 1>(args, panel, col, cols);
  }
}

// ---- float weights ----

template <class W, int kPanels, int kColumns = kFloatTileColumns>
MEMDECAY_INLINE void dispatch_float(int cols, const std::byte* panels, std::size_t panel_bytes,
                                    const float* x, std::ptrdiff_t ld_x, int inputs,
                                    float* const* total, bool first) {
  if constexpr (kColumns > 0) {
    if (cols >= kColumns) {
      float_pass<W, kPanels, kColumns>(panels, panel_bytes, x, ld_x, inputs, total, first);
    } else {
      dispatch_float<W, kPanels, kColumns - 1>(cols, panels, panel_bytes, x, ld_x, inputs, total,
                                               first);
    }
  }
}

template <class W, int kPanels>
MEMDECAY_NOINLINE void matmul_float_panels(const MatMulArgs& args, int panel, int col, int cols) {
  const PanelMatrix& weights = *args.weights;
  Totals totals;
  for (int i = 0; i < weights.k; i += kFloatPass) {
    const int inputs = std::min(kFloatPass, weights.k - i);
    const std::byte* from =
        panel_at(weights, panel) + static_cast<std::size_t>(i) * kPanelRows * W::kBytes;
    for (int c = 0; c < cols; c += kFloatTileColumns) {
      float* total[extent(kPanels)];
      for (int p = 0; p < kPanels; ++p) total[p] = totals.sums[p] + c * kPanelRows;
      dispatch_float<W, kPanels>(cols - c, from, weights.panel_bytes,
                                 args.x + (col + c) * args.ld_x + i, args.ld_x, inputs, total,
                                 i == 0);
    }
  }
  write_totals(args, panel, kPanels, col, cols, totals);
}

template <class W>
void matmul_float(const MatMulArgs& args) {
  for (int col = args.col_begin; col < args.col_end; col += kColumnBlock) {
    const int cols = std::min(kColumnBlock, args.col_end - col);
    int panel = args.panel_begin;
    for (; panel + kFloatTilePanels <= args.panel_end; panel += kFloatTilePanels) {
      matmul_float_panels<W, kFloatTilePanels>(args, panel, col, cols);
    }
    if (panel < args.panel_end) matmul_float_panels<W, 1>(args, panel, col, cols);
  }
}

void matmul(const MatMulArgs& args) {
  switch (args.weights->type) {
    case WeightType::kF32:
      return matmul_float<F32Weights>(args);
    case WeightType::kF16:
      return matmul_float<F16Weights>(args);
    case WeightType::kBF16:
      return matmul_float<BF16Weights>(args);
    case WeightType::kQ4_0:
      return matmul_quantized<Q4_0>(args);
    case WeightType::kQ4_1:
      return matmul_quantized<Q4_1>(args);
    case WeightType::kQ5_0:
      return matmul_quantized<Q5_0>(args);
    case WeightType::kQ5_1:
      return matmul_quantized<Q5_1>(args);
    case WeightType::kQ8_0:
      return matmul_quantized<Q8_0>(args);
    case WeightType::kIQ4_NL:
      return matmul_quantized<IQ4_NL>(args);
    case WeightType::kQ2_K:
      return matmul_quantized<Q2_K>(args);
    case WeightType::kQ3_K:
      return matmul_quantized<Q3_K>(args);
    case WeightType::kQ4_K:
      return matmul_quantized<Q4_K>(args);
    case WeightType::kQ5_K:
      return matmul_quantized<Q5_K>(args);
    case WeightType::kQ6_K:
      return matmul_quantized<Q6_K>(args);
  }
}

}  // namespace

}  // namespace memdecay::avx512

#include "kernels/target_end.h"

namespace memdecay::avx512 {

void add_matmul(KernelTable& table) {
  table.column_tile = 1;
  table.activation_bytes = matmul_activation_bytes;
  table.quantize_activations = quantize_activations;
  table.matmul = matmul;
}

}  // namespace memdecay::avx512
