// What one block of each weight type stands for, in plain arithmetic: the scalar truth.
//
// Every expression is written in the order in which GGUF's formats define it (fp16 scales widened
// to fp32, products and sums in fp32, each rounded), so that other readers of the format get the
// same bits. Pure functions, any thread. Used by weight_type.cc only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "quant/weight_type.h"

namespace memdecay {

/// Writes the block_values values of one block of block_bytes bytes.
using DequantizeBlock = void (*)(const std::byte* block, float* out);

DequantizeBlock block_dequantizer(WeightType type);

/// The sixteen values that IQ4_NL's codes stand for.
inline constexpr std::array<std::int8_t, 16> kIq4NlValues = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace memdecay
