// quantize_columns: activations block by block, whatever a table's way with one block is.
//
// Uses no vectors: the scalar table includes it too, the others inside their target region.
#pragma once

namespace memdecay {
namespace {

/// `quantize_block(x, block, column)` writes block `block` of the column from the 32 numbers at x.
template <class QuantizeBlock>
void quantize_columns(const QuantizeActivationsArgs& args, const QuantizeBlock& quantize_block) {
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

}  // namespace
}  // namespace memdecay
