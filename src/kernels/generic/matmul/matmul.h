// matmul: which panels and columns meet, and where their sums go.
//
// One column streams; more share unpacked panels, up to kColumnBlock at a time. `Products<T>` is
// how an instruction set multiplies the quantized type T: see column_stream.h and unpacked_panel.h,
// and
//     kPanels, kColumns, kBlocks       of a tile; blocks of 32 inputs per pass
//     Unpacked                         an UnpackedPanel for a pass
//     multiply<panels, columns>()      out[panel][column] += the pass
// Included inside a target region.
#pragma once

#include "kernels/generic/matmul/column_stream.h"
#include "kernels/generic/matmul/float_product.h"
#include "kernels/generic/matmul/quantize_activations.h"
#include "kernels/generic/matmul/unpacked_panel.h"

namespace memdecay {
namespace {

/// Columns that share one unpacking of a panel.
inline constexpr int kColumnBlock = 252;
inline constexpr int kStreams = 4;

// ---- results

/// Writes or adds 16 rows of one column, without touching rows past the matrix.
template <class L>
MEMDECAY_INLINE void write_rows(const MatMulArgs& args, int panel, int col, const Rows<L>& values) {
  const int row = panel * kPanelRows;
  const int present = args.weights->rows - row;
  float* out = args.out + col * args.ld_out + row;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) {
    const int at = i * L::kWidth;
    typename L::Floats part = values.part[i];
    if (args.accumulate) part = L::add(L::load_first(out + at, present - at), part);
    L::store_first(out + at, present - at, part);
  }
}

/// Sums of a block of columns while the inputs pass by.
template <int kPanels>
struct Totals {
  alignas(64) float sums[extent(kPanels)][kColumnBlock * kPanelRows];

  template <class L>
  void write(const MatMulArgs& args, int panel, int col, int cols) const {
    for (int c = 0; c < cols; ++c) {
      for (int p = 0; p < kPanels; ++p) {
        write_rows(args, panel + p, col + c, Rows<L>::load(sums[p] + c * kPanelRows));
      }
    }
  }
};

inline const std::byte* panel_at(const PanelMatrix& weights, int panel) {
  return weights.panels + static_cast<std::size_t>(panel) * weights.panel_bytes;
}

/// Calls each(panel, col, cols) for blocks of columns and kPanels panels, then last() for single
/// ones.
template <int kPanels, class Each, class Last>
MEMDECAY_INLINE void for_blocks(const MatMulArgs& args, const Each& each, const Last& last) {
  for (int col = args.col_begin; col < args.col_end; col += kColumnBlock) {
    const int cols = std::min(kColumnBlock, args.col_end - col);
    int panel = args.panel_begin;
    for (; panel + kPanels <= args.panel_end; panel += kPanels) each(panel, col, cols);
    for (; panel < args.panel_end; ++panel) last(panel, col, cols);
  }
}

// ---- quantized weights

template <class P>
MEMDECAY_NOINLINE void matmul_column(const MatMulArgs& args) {
  using T = typename P::Weights;
  const PanelMatrix& weights = *args.weights;
  const ActivationLayout layout(weights.k);
  const ConstActivationColumn y(args.quantized.storage, layout, args.col_begin);
  const std::size_t chunks = (static_cast<std::size_t>(weights.k) + T::kChunkInputs - 1) /
                             static_cast<std::size_t>(T::kChunkInputs);
  const bool fetch = fetching_ahead_pays();
  int panel = args.panel_begin;
  Rows<typename T::Lanes> sums[kStreams];
  // Four distant streams: panel i of each quarter of the range.
  const int quarter = (args.panel_end - args.panel_begin) / kStreams;
  const std::size_t quarter_bytes = static_cast<std::size_t>(quarter) * weights.panel_bytes;
  for (int i = 0; i < quarter; ++i, ++panel) {
    stream_column<P, kStreams>(panel_at(weights, panel), quarter_bytes, chunks, y, fetch, sums);
    for (int p = 0; p < kStreams; ++p) {
      write_rows(args, panel + p * quarter, args.col_begin, sums[p]);
    }
  }
  for (panel = args.panel_begin + kStreams * quarter; panel < args.panel_end; ++panel) {
    stream_column<P, 1>(panel_at(weights, panel), 0, chunks, y, fetch, sums);
    write_rows(args, panel, args.col_begin, sums[0]);
  }
}

template <class P, int kPanels, int kColumns = P::kColumns>
MEMDECAY_INLINE void multiply_tile(int cols, const typename P::Unpacked* panels,
                                   const TileColumns& columns, int blocks, float* const* out,
                                   bool first) {
  if constexpr (kColumns > 0) {
    if (cols >= kColumns) {
      P::template multiply<kPanels, kColumns>(panels, columns, blocks, out, first);
    } else {
      multiply_tile<P, kPanels, kColumns - 1>(cols, panels, columns, blocks, out, first);
    }
  }
}

template <class P, int kPanels>
MEMDECAY_NOINLINE void matmul_panels(const MatMulArgs& args, int panel, int col, int cols) {
  using T = typename P::Weights;
  const PanelMatrix& weights = *args.weights;
  const ActivationLayout layout(weights.k);
  typename P::Unpacked unpacked[extent(kPanels)];
  Totals<kPanels> totals;
  constexpr std::size_t kPassBlocks = extent(P::kBlocks);
  constexpr std::size_t kChunkBlocks = T::kChunkInputs / kActivationBlock;
  const std::size_t all_blocks =
      (static_cast<std::size_t>(weights.k / kActivationBlock) + kChunkBlocks - 1) / kChunkBlocks *
      kChunkBlocks;
  for (std::size_t block = 0; block < all_blocks; block += kPassBlocks) {
    const std::size_t blocks = std::min(kPassBlocks, all_blocks - block);
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* chunk = panel_at(weights, panel + p) + block / kChunkBlocks * T::kChunkBytes;
      const std::byte* next = block + kPassBlocks < all_blocks
                                  ? chunk + kPassBlocks / kChunkBlocks * T::kChunkBytes
                                  : panel_at(weights, panel + kPanels + p);
      unpack_panel<P>(chunk, blocks / kChunkBlocks, next, unpacked[p]);
    }
    for (int c = 0; c < cols; c += P::kColumns) {
      const ConstActivationColumn column(args.quantized.storage, layout, col + c);
      float* out[extent(kPanels)];
      for (int p = 0; p < kPanels; ++p) out[p] = totals.sums[p] + c * kPanelRows;
      multiply_tile<P, kPanels>(cols - c, unpacked,
                                TileColumns(column, block, T::kSubBlocks, layout.column_bytes),
                                static_cast<int>(blocks), out, block == 0);
    }
  }
  totals.template write<typename T::Lanes>(args, panel, col, cols);
}

template <class P>
void matmul_quantized(const MatMulArgs& args) {
  if (args.col_end - args.col_begin == 1) return matmul_column<P>(args);
  for_blocks<P::kPanels>(
      args,
      [&](int panel, int col, int cols) { matmul_panels<P, P::kPanels>(args, panel, col, cols); },
      [&](int panel, int col, int cols) { matmul_panels<P, 1>(args, panel, col, cols); });
}

// ---- float weights

template <class W, int kPanels, int kColumns = W::Lanes::kFloatColumns>
MEMDECAY_INLINE void multiply_floats(int cols, const std::byte* panels, std::size_t panel_bytes,
                                     const float* x, std::ptrdiff_t ld_x, int inputs,
                                     float* const* total, bool first) {
  if constexpr (kColumns > 0) {
    if (cols >= kColumns) {
      float_pass<W, kPanels, kColumns>(panels, panel_bytes, x, ld_x, inputs, total, first);
    } else {
      multiply_floats<W, kPanels, kColumns - 1>(cols, panels, panel_bytes, x, ld_x, inputs, total,
                                                first);
    }
  }
}

template <class W, int kPanels>
MEMDECAY_NOINLINE void matmul_float_panels(const MatMulArgs& args, int panel, int col, int cols) {
  using L = typename W::Lanes;
  const PanelMatrix& weights = *args.weights;
  Totals<kPanels> totals;
  for (int i = 0; i < weights.k; i += kFloatPass) {
    const int inputs = std::min(kFloatPass, weights.k - i);
    const std::byte* from =
        panel_at(weights, panel) + static_cast<std::size_t>(i) * kPanelRows * W::kBytes;
    for (int c = 0; c < cols; c += L::kFloatColumns) {
      float* total[extent(kPanels)];
      for (int p = 0; p < kPanels; ++p) total[p] = totals.sums[p] + c * kPanelRows;
      multiply_floats<W, kPanels>(cols - c, from, weights.panel_bytes,
                                  args.x + (col + c) * args.ld_x + i, args.ld_x, inputs, total,
                                  i == 0);
    }
  }
  totals.template write<L>(args, panel, col, cols);
}

template <class W>
void matmul_float(const MatMulArgs& args) {
  constexpr int kPanels = W::Lanes::kFloatPanels;
  for_blocks<kPanels>(
      args,
      [&](int panel, int col, int cols) {
        matmul_float_panels<W, kPanels>(args, panel, col, cols);
      },
      [&](int panel, int col, int cols) { matmul_float_panels<W, 1>(args, panel, col, cols); });
}

// ---- the table's entries

template <class L, template <class> class Products>
void matmul(const MatMulArgs& args) {
  switch (args.weights->type) {
    case WeightType::kF32:
      return matmul_float<F32Weights<L>>(args);
    case WeightType::kF16:
      return matmul_float<F16Weights<L>>(args);
    case WeightType::kBF16:
      return matmul_float<BF16Weights<L>>(args);
    case WeightType::kQ4_0:
      return matmul_quantized<Products<Q4_0<L>>>(args);
    case WeightType::kQ4_1:
      return matmul_quantized<Products<Q4_1<L>>>(args);
    case WeightType::kQ5_0:
      return matmul_quantized<Products<Q5_0<L>>>(args);
    case WeightType::kQ5_1:
      return matmul_quantized<Products<Q5_1<L>>>(args);
    case WeightType::kQ8_0:
      return matmul_quantized<Products<Q8_0<L>>>(args);
    case WeightType::kIQ4_NL:
      return matmul_quantized<Products<IQ4_NL<L>>>(args);
    case WeightType::kQ2_K:
      return matmul_quantized<Products<Q2_K<L>>>(args);
    case WeightType::kQ3_K:
      return matmul_quantized<Products<Q3_K<L>>>(args);
    case WeightType::kQ4_K:
      return matmul_quantized<Products<Q4_K<L>>>(args);
    case WeightType::kQ5_K:
      return matmul_quantized<Products<Q5_K<L>>>(args);
    case WeightType::kQ6_K:
      return matmul_quantized<Products<Q6_K<L>>>(args);
  }
}

template <class L, template <class> class Products>
void fill_matmul(KernelTable& table) {
  table.activation_bytes = matmul_activation_bytes;
  table.quantize_activations = quantize_activations<L>;
  table.matmul = matmul<L, Products>;
}

}  // namespace
}  // namespace memdecay
