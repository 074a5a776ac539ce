#include "quant/panel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "quant/panel_layout.h"
#include "quant/six_bit_scales.h"

namespace memdecay {
namespace {

constexpr std::size_t kRows = kPanelRows;

/// The blocks of 16 rows at one place; rows past the matrix point at zeros.
using RowBlocks = std::array<const std::byte*, kRows>;

std::uint32_t load32(const std::byte* p) {
  std::uint32_t value = 0;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

/// Units from `words` four-byte words of every row.
void transpose_words(const RowBlocks& rows, std::size_t at, std::size_t words, std::byte* out) {
  for (std::size_t r = 0; r < kRows; ++r) {
    const std::byte* row = rows[r] + at;
    std::byte* to = out + 4 * r;
    for (std::size_t w = 0; w < words; ++w) std::memcpy(to + kUnitBytes * w, row + 4 * w, 4);
  }
}

void transpose_halves(const RowBlocks& rows, std::size_t at, std::byte* out) {
  for (std::size_t r = 0; r < kRows; ++r) std::memcpy(out + 2 * r, rows[r] + at, 2);
}

/// What a byte of Q5_0's fifth bits (values 8n .. 8n + 7) adds to the word of a row, before its
/// shift by 2n: bit i goes to byte i % 4, bit i / 4.
constexpr std::array<std::uint32_t, 256> kBitSpread = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    for (std::uint32_t i = 0; i < 8; ++i) table[byte] |= ((byte >> i) & 1) << (i % 4 * 8 + i / 4);
  }
  return table;
}();

std::uint32_t spread_bits(std::uint32_t bits) {
  return kBitSpread[bits & 255] | (kBitSpread[(bits >> 8) & 255] << 2) |
         (kBitSpread[(bits >> 16) & 255] << 4) | (kBitSpread[bits >> 24] << 6);
}

/// The inverse of spread_bits.
std::uint32_t gather_bits(std::uint32_t word) {
  std::uint32_t bits = 0;
  for (std::uint32_t value = 0; value < 32; ++value) {
    bits |= ((word >> (value % 4 * 8 + value / 4)) & 1) << value;
  }
  return bits;
}

void transpose_bits(const RowBlocks& rows, std::size_t at, std::byte* out) {
  for (std::size_t r = 0; r < kRows; ++r) {
    const std::uint32_t word = spread_bits(load32(rows[r] + at));
    std::memcpy(out + 4 * r, &word, 4);
  }
}

void transpose_scale_bytes(const RowBlocks& rows, std::size_t at, std::byte* out) {
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t sub = 0; sub < 16; ++sub) out[kRows * sub + r] = rows[r][at + sub];
  }
}

template <SixBitScales (*kUnpack)(const std::byte*)>
void transpose_six_bits(const RowBlocks& rows, std::size_t at, std::byte* out) {
  std::array<std::uint8_t, 256> values{};
  for (std::size_t r = 0; r < kRows; ++r) {
    const SixBitScales scales = kUnpack(rows[r] + at);
    for (std::size_t sub = 0; sub < 16; ++sub) values[kRows * sub + r] = scales[sub];
  }
  pack_six_bit_planes(values.data(), out);
}

/// Where the parts of a GGUF block of 32 values start.
struct PairBlock {
  std::size_t d, m, bits, codes;
};

constexpr PairBlock pair_block(const PairChunk& chunk) {
  const std::size_t m = 2;
  const std::size_t bits = chunk.has_min ? 4 : 2;
  return {0, m, bits, bits + (chunk.has_bits ? 4 : 0)};
}

/// Where the parts of a GGUF block of 256 values start.
struct SuperBlock {
  std::size_t d, dmin, scales, high, codes;
};

constexpr SuperBlock super_block(WeightType type) {
  switch (type) {
    case WeightType::kQ2_K:
      return {80, 82, 0, 0, 16};
    case WeightType::kQ3_K:
      return {108, 0, 96, 0, 32};
    case WeightType::kQ4_K:
      return {0, 2, 4, 0, 16};
    case WeightType::kQ5_K:
      return {0, 2, 4, 16, 48};
    default:
      return {208, 0, 192, 128, 0};  // Q6_K
  }
}

template <PairChunk kChunk>
void repack_pair(const RowBlocks& rows, std::size_t half, std::byte* out) {
  constexpr PairBlock kBlock = pair_block(kChunk);
  transpose_words(rows, kBlock.codes, kChunk.code_bytes / kUnitBytes,
                  out + half * kChunk.code_bytes);
  if constexpr (kChunk.has_bits) {
    transpose_bits(rows, kBlock.bits, out + kChunk.bits_at() + half * kUnitBytes);
  }
  transpose_halves(rows, kBlock.d, out + kChunk.d_at() + half * 32);
  if constexpr (kChunk.has_min) transpose_halves(rows, kBlock.m, out + kChunk.m_at() + half * 32);
}

template <WeightType kType, SuperChunk kChunk>
void repack_super(const RowBlocks& rows, std::size_t, std::byte* out) {
  constexpr SuperBlock kBlock = super_block(kType);
  transpose_words(rows, kBlock.codes, kChunk.code_bytes / kUnitBytes, out);
  transpose_words(rows, kBlock.high, kChunk.high_bytes / kUnitBytes, out + kChunk.high_at());
  if constexpr (kChunk.scale_bytes == 256) {
    transpose_scale_bytes(rows, kBlock.scales, out + kChunk.scales_at());
  } else if constexpr (kType == WeightType::kQ3_K) {
    transpose_six_bits<unpack_q3_scales>(rows, kBlock.scales, out + kChunk.scales_at());
  } else {
    transpose_six_bits<unpack_scales_mins>(rows, kBlock.scales, out + kChunk.scales_at());
  }
  transpose_halves(rows, kBlock.d, out + kChunk.d_at());
  if constexpr (kChunk.has_min) transpose_halves(rows, kBlock.dmin, out + kChunk.dmin_at());
}

template <PairChunk kChunk>
void unpack_pair(const std::byte* chunk, std::size_t half, std::size_t row, std::byte* block) {
  constexpr PairBlock kBlock = pair_block(kChunk);
  const std::byte* codes = chunk + half * kChunk.code_bytes + 4 * row;
  for (std::size_t w = 0; w < kChunk.code_bytes / kUnitBytes; ++w) {
    std::memcpy(block + kBlock.codes + 4 * w, codes + kUnitBytes * w, 4);
  }
  if constexpr (kChunk.has_bits) {
    const std::uint32_t bits =
        gather_bits(load32(chunk + kChunk.bits_at() + half * kUnitBytes + 4 * row));
    std::memcpy(block + kBlock.bits, &bits, 4);
  }
  std::memcpy(block + kBlock.d, chunk + kChunk.d_at() + half * 32 + 2 * row, 2);
  if constexpr (kChunk.has_min) {
    std::memcpy(block + kBlock.m, chunk + kChunk.m_at() + half * 32 + 2 * row, 2);
  }
}

template <WeightType kType, SuperChunk kChunk>
void unpack_super(const std::byte* chunk, std::size_t, std::size_t row, std::byte* block) {
  constexpr SuperBlock kBlock = super_block(kType);
  for (std::size_t w = 0; w < kChunk.code_bytes / kUnitBytes; ++w) {
    std::memcpy(block + kBlock.codes + 4 * w, chunk + kUnitBytes * w + 4 * row, 4);
  }
  for (std::size_t w = 0; w < kChunk.high_bytes / kUnitBytes; ++w) {
    std::memcpy(block + kBlock.high + 4 * w, chunk + kChunk.high_at() + kUnitBytes * w + 4 * row,
                4);
  }
  const std::byte* packed = chunk + kChunk.scales_at();
  if constexpr (kChunk.scale_bytes == 256) {
    for (std::size_t sub = 0; sub < 16; ++sub) {
      block[kBlock.scales + sub] = packed[kRows * sub + row];
    }
  } else {
    SixBitScales scales;
    for (std::size_t sub = 0; sub < 16; ++sub) {
      scales[sub] = six_bit_plane_value(packed, kRows * sub + row);
    }
    if constexpr (kType == WeightType::kQ3_K) {
      pack_q3_scales(scales, block + kBlock.scales);
    } else {
      pack_scales_mins(scales, block + kBlock.scales);
    }
  }
  std::memcpy(block + kBlock.d, chunk + kChunk.d_at() + 2 * row, 2);
  if constexpr (kChunk.has_min) {
    std::memcpy(block + kBlock.dmin, chunk + kChunk.dmin_at() + 2 * row, 2);
  }
}

/// How one quantized type is packed.
struct Packing {
  int chunk_inputs;
  std::size_t chunk_bytes;
  void (*repack)(const RowBlocks& rows, std::size_t half, std::byte* chunk);
  void (*unpack)(const std::byte* chunk, std::size_t half, std::size_t row, std::byte* block);
};

template <PairChunk kChunk>
constexpr Packing kPairPacking = {PairChunk::kInputs, kChunk.bytes(), repack_pair<kChunk>,
                                  unpack_pair<kChunk>};
template <WeightType kType, SuperChunk kChunk>
constexpr Packing kSuperPacking = {SuperChunk::kInputs, kChunk.bytes(), repack_super<kType, kChunk>,
                                   unpack_super<kType, kChunk>};

/// Null for the float types.
const Packing* find_packing(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
      return &kPairPacking<kQ4_0Chunk>;
    case WeightType::kQ4_1:
      return &kPairPacking<kQ4_1Chunk>;
    case WeightType::kQ5_0:
      return &kPairPacking<kQ5_0Chunk>;
    case WeightType::kQ5_1:
      return &kPairPacking<kQ5_1Chunk>;
    case WeightType::kQ8_0:
      return &kPairPacking<kQ8_0Chunk>;
    case WeightType::kIQ4_NL:
      return &kPairPacking<kIQ4_NLChunk>;
    case WeightType::kQ2_K:
      return &kSuperPacking<WeightType::kQ2_K, kQ2_KChunk>;
    case WeightType::kQ3_K:
      return &kSuperPacking<WeightType::kQ3_K, kQ3_KChunk>;
    case WeightType::kQ4_K:
      return &kSuperPacking<WeightType::kQ4_K, kQ4_KChunk>;
    case WeightType::kQ5_K:
      return &kSuperPacking<WeightType::kQ5_K, kQ5_KChunk>;
    case WeightType::kQ6_K:
      return &kSuperPacking<WeightType::kQ6_K, kQ6_KChunk>;
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      return nullptr;
  }
  check_failed(__FILE__, __LINE__, "type is a WeightType");
}

/// [k][16 rows] from 16 rows of k values. Eight values of a row at a time keep both sides in few
/// cache lines.
template <std::size_t kBytes>
void transpose_floats(const RowBlocks& rows, std::size_t k, std::byte* out) {
  for (std::size_t begin = 0; begin < k; begin += 8) {
    const std::size_t end = std::min(k, begin + 8);
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t i = begin; i < end; ++i) {
        std::memcpy(out + (i * kRows + r) * kBytes, rows[r] + i * kBytes, kBytes);
      }
    }
  }
}

void repack_floats(WeightType type, const RowBlocks& rows, int k, std::span<std::byte> out) {
  const auto values = static_cast<std::size_t>(k);
  const std::size_t bytes = weight_type_traits(type).block_bytes;
  if (bytes == 4) {
    transpose_floats<4>(rows, values, out.data());
  } else {
    transpose_floats<2>(rows, values, out.data());
  }
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(values * kRows * bytes), out.end(),
            std::byte{0});
}

}  // namespace

bool is_quantized(WeightType type) {
  return find_packing(type) != nullptr;
}

std::size_t panel_bytes(WeightType type, int k) {
  const auto inputs = static_cast<std::size_t>(k);
  const Packing* packing = find_packing(type);
  std::size_t bytes = 0;
  if (packing == nullptr) {
    bytes = inputs * kRows * weight_type_traits(type).block_bytes;
  } else {
    MEMDECAY_CHECK(k % weight_type_traits(type).block_values == 0);
    const auto chunk = static_cast<std::size_t>(packing->chunk_inputs);
    bytes = (inputs + chunk - 1) / chunk * packing->chunk_bytes;
  }
  return (bytes + 63) / 64 * 64;
}

void repack_panel(WeightType type, int rows, int k, std::span<const std::byte> source, int panel,
                  std::span<std::byte> out) {
  const std::size_t row_bytes = weight_row_bytes(type, k);
  MEMDECAY_CHECK(source.size() == static_cast<std::size_t>(rows) * row_bytes);
  MEMDECAY_CHECK(out.size() == panel_bytes(type, k));
  MEMDECAY_CHECK(panel >= 0 && panel * kPanelRows < rows);
  const std::size_t first = static_cast<std::size_t>(panel) * kRows;
  const std::size_t present = std::min(kRows, static_cast<std::size_t>(rows) - first);
  const std::vector<std::byte> zeros(present < kRows ? row_bytes : 0);
  RowBlocks row_blocks;
  for (std::size_t r = 0; r < kRows; ++r) {
    row_blocks[r] = r < present ? source.data() + (first + r) * row_bytes : zeros.data();
  }
  const Packing* packing = find_packing(type);
  if (packing == nullptr) return repack_floats(type, row_blocks, k, out);

  const WeightTypeTraits& traits = weight_type_traits(type);
  const auto blocks_per_chunk =
      static_cast<std::size_t>(packing->chunk_inputs / traits.block_values);
  const auto blocks = static_cast<std::size_t>(k / traits.block_values);
  const std::size_t chunks = (blocks + blocks_per_chunk - 1) / blocks_per_chunk;
  const std::size_t whole = blocks / blocks_per_chunk * packing->chunk_bytes;
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(whole), out.end(), std::byte{0});
  for (std::size_t chunk = 0, block = 0; chunk < chunks; ++chunk) {
    std::byte* to = out.data() + chunk * packing->chunk_bytes;
    for (std::size_t half = 0; half < blocks_per_chunk && block < blocks; ++half, ++block) {
      packing->repack(row_blocks, half, to);
      for (const std::byte*& row : row_blocks) row += traits.block_bytes;
    }
  }
}

void unpack_row(const PanelMatrix& matrix, int row, std::span<float> out) {
  MEMDECAY_CHECK(row >= 0 && row < matrix.rows && out.size() == static_cast<std::size_t>(matrix.k));
  const WeightTypeTraits& traits = weight_type_traits(matrix.type);
  const auto row_in_panel = static_cast<std::size_t>(row % kPanelRows);
  const std::byte* panel =
      matrix.panels + static_cast<std::size_t>(row / kPanelRows) * matrix.panel_bytes;
  const Packing* packing = find_packing(matrix.type);
  const auto block_values = static_cast<std::size_t>(traits.block_values);
  const std::size_t blocks = out.size() / block_values;
  const std::size_t per_chunk =
      packing == nullptr ? 1 : static_cast<std::size_t>(packing->chunk_inputs) / block_values;
  std::array<std::byte, 256> block{};
  for (std::size_t b = 0; b < blocks; ++b) {
    if (packing == nullptr) {
      std::memcpy(block.data(), panel + (b * kRows + row_in_panel) * traits.block_bytes,
                  traits.block_bytes);
    } else {
      packing->unpack(panel + b / per_chunk * packing->chunk_bytes, b % per_chunk, row_in_panel,
                      block.data());
    }
    dequantize_weights(matrix.type, {block.data(), traits.block_bytes},
                       out.subspan(b * block_values, block_values));
  }
}

}  // namespace memdecay
