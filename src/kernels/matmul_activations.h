// The order inside QuantizedActivations::storage. All tables share it, so that their
// quantize_activations can be compared byte for byte; callers still must not read it.
//
// Columns follow each other, each padded to a multiple of 64 inputs (codes, scales and sums of the
// padding are zero) and 64 bytes. Within a column, with n = padded_k / 32 blocks:
//     codes         int8  [padded_k]   y = code * scale, |code| <= 127
//     scale         float [n]          amax / 127
//     offset        int32 [n]          -128 * sum(codes of the 32)
//     scaled_sum    float [n]          scale * sum(codes of the 32)
//     offset_16     int32 [2 n]        the same per 16 inputs, for types with sub-blocks of 16
//     scaled_sum_16 float [2 n]
// Rounding, in every table: scale = amax / 127 in fp32, code = x * (127 / amax) rounded to nearest
// even. A block whose amax is below kSmallestAmax is zero. REQUIRES: finite inputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matmul.h"

namespace memdecay {

inline constexpr int kActivationBlock = 32;
/// Below this 127 / amax could overflow.
inline constexpr float kSmallestAmax = 0x1p-100f;

struct ActivationLayout {
  std::size_t padded_k;
  std::size_t blocks;
  std::size_t column_bytes;

  explicit ActivationLayout(int k)
      : padded_k((static_cast<std::size_t>(k) + 63) / 64 * 64),
        blocks(padded_k / kActivationBlock),
        column_bytes((padded_k + 28 * blocks + 63) / 64 * 64) {}
};

/// One column.
template <typename Byte, typename Code, typename Float, typename Int>
struct ActivationColumnOf {
  Code* codes;
  Float* scale;
  Int* offset;
  Float* scaled_sum;
  Int* offset_16;
  Float* scaled_sum_16;

  ActivationColumnOf(Byte* storage, const ActivationLayout& layout, int column) {
    Byte* at = storage + static_cast<std::size_t>(column) * layout.column_bytes;
    codes = reinterpret_cast<Code*>(at);
    at += layout.padded_k;
    scale = reinterpret_cast<Float*>(at);
    at += 4 * layout.blocks;
    offset = reinterpret_cast<Int*>(at);
    at += 4 * layout.blocks;
    scaled_sum = reinterpret_cast<Float*>(at);
    at += 4 * layout.blocks;
    offset_16 = reinterpret_cast<Int*>(at);
    at += 8 * layout.blocks;
    scaled_sum_16 = reinterpret_cast<Float*>(at);
  }

  /// What stands beside the codes of a block, `sums` being those of its halves of 16.
  void set_scale(std::size_t block, float scale_of_block, const std::int32_t (&sums)[2]) const {
    const std::int32_t sum = sums[0] + sums[1];
    scale[block] = scale_of_block;
    offset[block] = -128 * sum;
    scaled_sum[block] = scale_of_block * static_cast<float>(sum);
    for (std::size_t half = 0; half < 2; ++half) {
      offset_16[2 * block + half] = -128 * sums[half];
      scaled_sum_16[2 * block + half] = scale_of_block * static_cast<float>(sums[half]);
    }
  }
};

using ActivationColumn = ActivationColumnOf<std::byte, std::int8_t, float, std::int32_t>;
using ConstActivationColumn =
    ActivationColumnOf<const std::byte, const std::int8_t, const float, const std::int32_t>;

/// KernelTable::activation_bytes of every table.
std::size_t matmul_activation_bytes(int k, int cols);

}  // namespace memdecay
