// The byte order inside a panel, for those who read it: the kernels and unpack_row.
// docs/formats/panels.md is the same in words.
//
// A panel of a quantized type is a run of *chunks*: 64 inputs (two GGUF blocks) in the types with
// blocks of 32, 256 inputs (one block) in the K types. In a chunk every plane of codes is a
// sequence of 64-byte units: bytes 4r .. 4r + 3 of a unit are four successive bytes of row r's
// GGUF block. Then come the scales, 16 rows together. An odd number of blocks leaves the second
// half of the last chunk zero. Panels of F32, F16 and BF16 are [k][16 rows].
#pragma once

#include <cstddef>

#include "quant/panel.h"

namespace memdecay {

inline constexpr std::size_t kUnitBytes = 64;

/// Types with GGUF blocks of 32 values: [codes of block 0][codes of block 1]
/// [bits of block 0][bits of block 1][d of block 0][d of block 1][m of block 0][m of block 1].
struct PairChunk {
  std::size_t code_bytes = 0;  ///< per block, 16 rows: 256 (nibbles) or 512 (bytes)
  bool has_bits = false;       ///< 64 bytes per block: bit g of byte 4r + i is the fifth bit of
                               ///< row r's value 4g + i
  bool has_min = false;

  static constexpr int kInputs = 64;
  constexpr std::size_t bits_at() const { return 2 * code_bytes; }
  constexpr std::size_t d_at() const { return bits_at() + (has_bits ? 2 * kUnitBytes : 0); }
  constexpr std::size_t m_at() const { return d_at() + 64; }
  constexpr std::size_t bytes() const { return m_at() + (has_min ? 64 : 0); }
};

inline constexpr PairChunk kQ4_0Chunk{256, false, false};
inline constexpr PairChunk kQ4_1Chunk{256, false, true};
inline constexpr PairChunk kQ5_0Chunk{256, true, false};
inline constexpr PairChunk kQ5_1Chunk{256, true, true};
inline constexpr PairChunk kQ8_0Chunk{512, false, false};
inline constexpr PairChunk kIQ4_NLChunk{256, false, false};

/// K types: [codes][high codes][scales][d][dmin].
struct SuperChunk {
  std::size_t code_bytes = 0;
  std::size_t high_bytes = 0;
  std::size_t scale_bytes = 0;  ///< 192: planes of six_bit_scales.h; 256: bytes [sub-block][row]
  bool has_min = false;

  static constexpr int kInputs = 256;
  constexpr std::size_t high_at() const { return code_bytes; }
  constexpr std::size_t scales_at() const { return code_bytes + high_bytes; }
  constexpr std::size_t d_at() const { return scales_at() + scale_bytes; }
  constexpr std::size_t dmin_at() const { return d_at() + 32; }
  constexpr std::size_t bytes() const { return dmin_at() + (has_min ? 32 : 0); }
};

inline constexpr SuperChunk kQ2_KChunk{1024, 0, 256, true};
inline constexpr SuperChunk kQ3_KChunk{1024, 512, 192, false};
inline constexpr SuperChunk kQ4_KChunk{2048, 0, 192, true};
inline constexpr SuperChunk kQ5_KChunk{2048, 512, 192, true};
inline constexpr SuperChunk kQ6_KChunk{2048, 1024, 256, false};

}  // namespace memdecay
