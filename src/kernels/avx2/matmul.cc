#include <algorithm>

#include "core/check.h"
#include "kernels/avx2/matmul_float.h"
#include "kernels/avx2/matmul_stream.h"
#include "kernels/avx2/matmul_tile.h"
#include "kernels/avx2/table.h"
#include "kernels/matmul_activations.h"

#include "kernels/target_avx2.h"

namespace memdecay::avx2 {
namespace {

/// Columns that share one unpacking of a panel.
constexpr int kColumnBlock = 252;
constexpr int kStreams = 4;

// ---- activations ----

MEMDECAY_INLINE float largest_of(__m256 x) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

MEMDECAY_INLINE std::int32_t sum_of(__m256i x) {
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 1)));
}

void quantize_block(const float* x, std::size_t block, const ActivationColumn& column) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  __m256 v[4];
  __m256 largest = _mm256_setzero_ps();
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    largest = _mm256_max_ps(largest, _mm256_and_ps(v[i], magnitude));
  }
  const float amax = largest_of(largest);
  const bool zero = !(amax >= kSmallestAmax);
  const float scale = zero ? 0 : amax / 127;
  const __m256 inverse = _mm256_set1_ps(zero ? 0 : 127 / amax);
  __m256i q[4];
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));
  // Packing works per 128 bits and leaves the groups of four in the order 0 2 4 6 1 3 5 7.
  const __m256i words =
      _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(column.codes + block * kActivationBlock),
                      _mm256_permutevar8x32_epi32(words, order));
  const std::int32_t sums[2] = {sum_of(_mm256_add_epi32(q[0], q[1])),
                                sum_of(_mm256_add_epi32(q[2], q[3]))};
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
MEMDECAY_INLINE void write_rows(const MatMulArgs& args, int panel, int col, Rows values) {
  const int row = panel * kPanelRows;
  const int present = std::min(kPanelRows, args.weights->rows - row);
  float* out = args.out + col * args.ld_out + row;
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  MEMDECAY_UNROLL
  for (int h = 0; h < 2; ++h) {
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(present - 8 * h), lanes);
    __m256 half = values.half[h];
    if (args.accumulate) half = _mm256_add_ps(_mm256_maskload_ps(out + 8 * h, mask), half);
    _mm256_maskstore_ps(out + 8 * h, mask, half);
  }
}

/// Sums of a block of columns while the inputs pass by.
struct Totals {
  alignas(64) float sums[kColumnBlock * kPanelRows];
};

void write_totals(const MatMulArgs& args, int panel, int col, int cols, const Totals& totals) {
  for (int c = 0; c < cols; ++c) {
    const float* from = totals.sums + c * kPanelRows;
    write_rows(args, panel, col + c, {{_mm256_load_ps(from), _mm256_load_ps(from + 8)}});
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
  Rows sums[kStreams];
  // Four distant streams: panel i of each quarter of the range.
  const int quarter = (args.panel_end - args.panel_begin) / kStreams;
  const std::size_t quarter_bytes = static_cast<std::size_t>(quarter) * weights.panel_bytes;
  for (int i = 0; i < quarter; ++i, ++panel) {
    stream_column<T, kStreams>(panel_at(weights, panel), quarter_bytes, chunks, y, fetch, sums);
    for (int p = 0; p < kStreams; ++p) {
      write_rows(args, panel + p * quarter, args.col_begin, sums[p]);
    }
  }
  for (panel = args.panel_begin + kStreams * quarter; panel < args.panel_end; ++panel) {
    stream_column<T, 1>(panel_at(weights, panel), 0, chunks, y, fetch, sums);
    write_rows(args, panel, args.col_begin, sums[0]);
  }
}

template <class T, int kColumns = TileShape<T>::kColumns>
MEMDECAY_INLINE void dispatch_tile(int cols, const UnpackedPanel& panel, const TileColumns& columns,
                                   int blocks, float* out, bool first) {
  if constexpr (kColumns > 0) {
    if (cols >= kColumns) {
      for (int half = 0; half < 2; half += TileShape<T>::kHalves) {
        tile<TileShape<T>, kColumns>(panel, half, columns, blocks, out, first);
      }
    } else {
      dispatch_tile<T, kColumns - 1>(cols, panel, columns, blocks, out, first);
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

template <class T>
MEMDECAY_NOINLINE void matmul_panel(const MatMulArgs& args, int panel, int col, int cols) {
  const PanelMatrix& weights = *args.weights;
  const ActivationLayout layout(weights.k);
  UnpackedPanel unpacked;
  Totals totals;
  constexpr std::size_t kChunkBlocks = T::kChunkInputs / kActivationBlock;
  const std::size_t all_blocks =
      (static_cast<std::size_t>(weights.k / kActivationBlock) + kChunkBlocks - 1) / kChunkBlocks *
      kChunkBlocks;
  for (std::size_t block = 0; block < all_blocks; block += kTileBlocks) {
    const std::size_t blocks = std::min<std::size_t>(kTileBlocks, all_blocks - block);
    const std::byte* chunk = panel_at(weights, panel) + block / kChunkBlocks * T::kChunkBytes;
    const std::byte* next = block + kTileBlocks < all_blocks
                                ? chunk + kTileBlocks / kChunkBlocks * T::kChunkBytes
                                : panel_at(weights, panel + 1);
    unpack_panel<T>(chunk, blocks / kChunkBlocks, next, unpacked);
    for (int c = 0; c < cols; c += TileShape<T>::kColumns) {
      const ConstActivationColumn column(args.quantized.storage, layout, col + c);
      dispatch_tile<T>(cols - c, unpacked,
                       tile_columns(column, block, T::kSubBlocks, layout.column_bytes),
                       static_cast<int>(blocks), totals.sums + c * kPanelRows, block == 0);
    }
  }
  write_totals(args, panel, col, cols, totals);
}

template <class T>
void matmul_quantized(const MatMulArgs& args) {
  if (args.col_end - args.col_begin == 1) return matmul_column<T>(args);
  for (int col = args.col_begin; col < args.col_end; col += kColumnBlock) {
    const int cols = std::min(kColumnBlock, args.col_end - col);
    for (int panel = args.panel_begin; panel < args.panel_end; ++panel) {
      matmul_panel<T>(args, panel, col, cols);
    }
  }
}

// ---- float weights ----

template <class W, int kPanels, int kColumns>
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

template <class W>
MEMDECAY_NOINLINE void matmul_float_panel(const MatMulArgs& args, int panel, int col, int cols) {
  const PanelMatrix& weights = *args.weights;
  Totals totals;
  for (int i = 0; i < weights.k; i += kFloatPass) {
    const int inputs = std::min(kFloatPass, weights.k - i);
    const std::byte* from =
        panel_at(weights, panel) + static_cast<std::size_t>(i) * kPanelRows * W::kBytes;
    for (int c = 0; c < cols; c += kFloatTileColumns) {
      float* total[1] = {totals.sums + c * kPanelRows};
      dispatch_float<W, 1, kFloatTileColumns>(cols - c, from, weights.panel_bytes,
                                              args.x + (col + c) * args.ld_x + i, args.ld_x, inputs,
                                              total, i == 0);
    }
  }
  write_totals(args, panel, col, cols, totals);
}

template <class W>
void matmul_float(const MatMulArgs& args) {
  for (int col = args.col_begin; col < args.col_end; col += kColumnBlock) {
    const int cols = std::min(kColumnBlock, args.col_end - col);
    for (int panel = args.panel_begin; panel < args.panel_end; ++panel) {
      matmul_float_panel<W>(args, panel, col, cols);
    }
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

}  // namespace memdecay::avx2

#include "kernels/target_end.h"

namespace memdecay::avx2 {

void add_matmul(KernelTable& table) {
  table.column_tile = 1;
  table.activation_bytes = matmul_activation_bytes;
  table.quantize_activations = quantize_activations;
  table.matmul = matmul;
}

}  // namespace memdecay::avx2
