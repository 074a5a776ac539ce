#include "quant/dequantize.h"

#include <cstring>

#include "core/check.h"
#include "quant/half.h"
#include "quant/six_bit_scales.h"

namespace memdecay {
namespace {

float half_at(const std::byte* p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof(bits));
  return half_to_float(bits);
}

int byte_at(const std::byte* p, int index) {
  return std::to_integer<int>(p[index]);
}

void dequantize_f32(const std::byte* block, float* out) {
  std::memcpy(out, block, sizeof(float));
}

void dequantize_f16(const std::byte* block, float* out) {
  *out = half_at(block);
}

void dequantize_bf16(const std::byte* block, float* out) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, block, sizeof(bits));
  *out = bfloat16_to_float(bits);
}

// In the types of 32 values byte i of the nibbles holds value i (low) and value i + 16 (high).
int nibble(const std::byte* nibbles, int value) {
  return value < 16 ? byte_at(nibbles, value) & 15 : byte_at(nibbles, value - 16) >> 4;
}

int bit(const std::byte* bits, int index) {
  return (byte_at(bits, index / 8) >> (index % 8)) & 1;
}

void dequantize_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 2, i) - 8);
}

void dequantize_q4_1(const std::byte* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 4, i)) + m;
}

void dequantize_q5_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) {
    const int code = nibble(block + 6, i) | (bit(block + 2, i) << 4);
    out[i] = d * static_cast<float>(code - 16);
  }
}

void dequantize_q5_1(const std::byte* block, float* out) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int i = 0; i < 32; ++i) {
    const int code = nibble(block + 8, i) | (bit(block + 4, i) << 4);
    out[i] = d * static_cast<float>(code) + m;
  }
}

void dequantize_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(static_cast<std::int8_t>(byte_at(block + 2, i)));
  }
}

void dequantize_iq4_nl(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(kIq4NlValues[static_cast<std::size_t>(nibble(block + 2, i))]);
  }
}

// In the types of 256 values a plane of 2-bit codes holds 128 values in 32 bytes: byte i has values
// i, i + 32, i + 64 and i + 96 from its lowest bits up.
int two_bits(const std::byte* plane, int value) {
  const int within = value % 128;
  return (byte_at(plane, value / 128 * 32 + within % 32) >> (within / 32 * 2)) & 3;
}

// A plane of single bits holds 256 values in 32 bytes: bit n of byte i is value 32 n + i.
int plane_bit(const std::byte* plane, int value) {
  return (byte_at(plane, value % 32) >> (value / 32)) & 1;
}

void dequantize_q2_k(const std::byte* block, float* out) {
  const float d = half_at(block + 80), dmin = half_at(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int scale_min = byte_at(block, i / 16);
    const float scale = d * static_cast<float>(scale_min & 15);
    const float min = dmin * static_cast<float>(scale_min >> 4);
    out[i] = scale * static_cast<float>(two_bits(block + 16, i)) - min;
  }
}

void dequantize_q3_k(const std::byte* block, float* out) {
  const float d = half_at(block + 108);
  const SixBitScales scales = unpack_q3_scales(block + 96);
  for (int i = 0; i < 256; ++i) {
    const float scale = d * static_cast<float>(scales[static_cast<std::size_t>(i / 16)] - 32);
    const int code = two_bits(block + 32, i) | (plane_bit(block, i) << 2);
    out[i] = scale * static_cast<float>(code - 4);
  }
}

// Q4_K, Q5_K: 64 values in 32 bytes, byte i has value i (low) and value i + 32 (high).
int paired_nibble(const std::byte* nibbles, int value) {
  const int byte = byte_at(nibbles, value / 64 * 32 + value % 32);
  return value % 64 < 32 ? byte & 15 : byte >> 4;
}

// Q4_K, Q5_K: `code(i)` is value i's; scales and minima of 32 values are packed alike.
template <typename Code>
void dequantize_with_minima(const std::byte* block, float* out, const Code& code) {
  const float d = half_at(block), dmin = half_at(block + 2);
  const SixBitScales scales = unpack_scales_mins(block + 4);
  for (int i = 0; i < 256; ++i) {
    const auto sub = static_cast<std::size_t>(i / 32);
    const float scale = d * static_cast<float>(scales[sub]);
    const float min = dmin * static_cast<float>(scales[8 + sub]);
    out[i] = scale * static_cast<float>(code(i)) - min;
  }
}

void dequantize_q4_k(const std::byte* block, float* out) {
  dequantize_with_minima(block, out, [&](int i) { return paired_nibble(block + 16, i); });
}

void dequantize_q5_k(const std::byte* block, float* out) {
  dequantize_with_minima(block, out, [&](int i) {
    return paired_nibble(block + 48, i) | (plane_bit(block + 16, i) << 4);
  });
}

// Q6_K: 128 values in 64 bytes of nibbles: byte i has value i (low) and value i + 64 (high).
void dequantize_q6_k(const std::byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const float scale =
        d * static_cast<float>(static_cast<std::int8_t>(byte_at(block + 192, i / 16)));
    const int byte = byte_at(block, i / 128 * 64 + i % 64);
    const int low = i % 128 < 64 ? byte & 15 : byte >> 4;
    const int code = low | (two_bits(block + 128, i) << 4);
    out[i] = scale * static_cast<float>(code - 32);
  }
}

}  // namespace

DequantizeBlock block_dequantizer(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return dequantize_f32;
    case WeightType::kF16:
      return dequantize_f16;
    case WeightType::kQ4_0:
      return dequantize_q4_0;
    case WeightType::kQ4_1:
      return dequantize_q4_1;
    case WeightType::kQ5_0:
      return dequantize_q5_0;
    case WeightType::kQ5_1:
      return dequantize_q5_1;
    case WeightType::kQ8_0:
      return dequantize_q8_0;
    case WeightType::kQ2_K:
      return dequantize_q2_k;
    case WeightType::kQ3_K:
      return dequantize_q3_k;
    case WeightType::kQ4_K:
      return dequantize_q4_k;
    case WeightType::kQ5_K:
      return dequantize_q5_k;
    case WeightType::kQ6_K:
      return dequantize_q6_k;
    case WeightType::kIQ4_NL:
      return dequantize_iq4_nl;
    case WeightType::kBF16:
      return dequantize_bf16;
  }
  check_failed(__FILE__, __LINE__, "type is a WeightType");
}

}  // namespace memdecay
