// The weight types as the kernels see them: unsigned codes of 16 rows x 4 inputs, and fp32 scales.
//
// A type T<L>, L the lanes of an instruction set, states
//   kChunkInputs, kChunkBytes    the chunk of quant/panel_layout.h
//   kSubBlocks                   sub-blocks per 32 inputs that have scales of their own: 1 or 2
//   kHasMin                      w = scale * code + min (min <= 0 in the K types, in m[])
//   kShift                       without mins: w = scale * (code - (128 >> kShift))
//   kSpanBlocks, kSteps, kCodes  a chunk is read in spans of kSpanBlocks blocks of 32 inputs. A
//                                step j yields kCodes vectors of codes: with one block in a span,
//                                its groups j, j + kSteps, ...; else group j of each block
//   kFlush                       groups whose products 16 bits can hold: the largest code is c with
//                                kFlush * 2 * c * 127 <= 32767; 1: codes are whole bytes and need
//                                another way
// and codes<span, step>(), scales(). Codes are below 256 >> kShift. Each type states all of it,
// like a row of a table. Included inside a target region.
#pragma once

#include "kernels/generic/matmul/panel_vectors.h"

namespace memdecay {
namespace {

template <class L, PairChunk kChunk, bool kTable>
struct PairNibbles {
  using Lanes = L;
  static constexpr int kChunkInputs = PairChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kChunk.bytes();
  static constexpr int kSubBlocks = 1;
  static constexpr bool kHasMin = kChunk.has_min;
  static constexpr int kShift = kTable || kHasMin ? 0 : (kChunk.has_bits ? 3 : 4);
  static constexpr int kFlush = kTable ? 1 : (kChunk.has_bits ? 4 : 8);
  static constexpr int kSpanBlocks = 1, kSteps = 4, kCodes = 2;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Unit<L> (&u)[extent(kCodes)]) {
    const Unit<L> x = load_unit<L>(chunk + kSpan * kChunk.code_bytes + kStep * kUnitBytes);
    u[0] = take_bits<0, 0, 15>(x);
    u[1] = take_bits<4, 0, 15>(x);
    if constexpr (kChunk.has_bits) {
      const Unit<L> bits = load_unit<L>(chunk + kChunk.bits_at() + kSpan * kUnitBytes);
      u[0] = unite(u[0], take_bits<kStep, 4, 16>(bits));
      u[1] = unite(u[1], take_bits<kStep + 4, 4, 16>(bits));
    }
    if constexpr (kTable) {
      u[0] = look_up_iq4_nl(u[0]);
      u[1] = look_up_iq4_nl(u[1]);
    }
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, Rows<L> (&s)[2], Rows<L> (&m)[2]) {
    MEMDECAY_UNROLL
    for (int b = 0; b < 2; ++b) {
      s[b] = load_halves<L>(chunk + kChunk.d_at() + 32 * b);
      if constexpr (kChunk.has_min) m[b] = load_halves<L>(chunk + kChunk.m_at() + 32 * b);
    }
  }
};

template <class L>
using Q4_0 = PairNibbles<L, kQ4_0Chunk, false>;
template <class L>
using Q4_1 = PairNibbles<L, kQ4_1Chunk, false>;
template <class L>
using Q5_0 = PairNibbles<L, kQ5_0Chunk, false>;
template <class L>
using Q5_1 = PairNibbles<L, kQ5_1Chunk, false>;
template <class L>
using IQ4_NL = PairNibbles<L, kIQ4_NLChunk, true>;

template <class L>
struct Q8_0 {
  using Lanes = L;
  static constexpr int kChunkInputs = PairChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ8_0Chunk.bytes();
  static constexpr int kSubBlocks = 1;
  static constexpr bool kHasMin = false;
  static constexpr int kShift = 0;
  static constexpr int kFlush = 1;
  static constexpr int kSpanBlocks = 1, kSteps = 8, kCodes = 1;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Unit<L> (&u)[1]) {
    const Unit<L> x = load_unit<L>(chunk + kSpan * kQ8_0Chunk.code_bytes + kStep * kUnitBytes);
    u[0] = flip_signs(x);
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, Rows<L> (&s)[2], Rows<L> (&)[2]) {
    s[0] = load_halves<L>(chunk + kQ8_0Chunk.d_at());
    s[1] = load_halves<L>(chunk + kQ8_0Chunk.d_at() + 32);
  }
};

/// The 256 six-bit values of quant/six_bit_scales.h as bytes.
template <class L>
MEMDECAY_INLINE void unpack_six_bits(const std::byte* planes, Unit<L> (&v)[4]) {
  const Unit<L> low0 = load_unit<L>(planes), low1 = load_unit<L>(planes + 64);
  const Unit<L> high = load_unit<L>(planes + 128);
  v[0] = unite(take_bits<0, 0, 15>(low0), take_bits<0, 4, 48>(high));
  v[1] = unite(take_bits<4, 0, 15>(low0), take_bits<2, 4, 48>(high));
  v[2] = unite(take_bits<0, 0, 15>(low1), take_bits<4, 4, 48>(high));
  v[3] = unite(take_bits<4, 0, 15>(low1), take_bits<6, 4, 48>(high));
}

template <class L, SuperChunk kChunk>
struct Q45_K {
  using Lanes = L;
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kChunk.bytes();
  static constexpr int kSubBlocks = 1;
  static constexpr bool kHasMin = true;
  static constexpr int kShift = 0;
  static constexpr int kFlush = kChunk.high_bytes != 0 ? 4 : 8;
  static constexpr int kSpanBlocks = 2, kSteps = 8, kCodes = 2;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Unit<L> (&u)[2]) {
    const Unit<L> x = load_unit<L>(chunk + (kSpan * 8 + kStep) * kUnitBytes);
    u[0] = take_bits<0, 0, 15>(x);
    u[1] = take_bits<4, 0, 15>(x);
    if constexpr (kChunk.high_bytes != 0) {
      const Unit<L> bits = load_unit<L>(chunk + kChunk.high_at() + kStep * kUnitBytes);
      u[0] = unite(u[0], take_bits<2 * kSpan, 4, 16>(bits));
      u[1] = unite(u[1], take_bits<2 * kSpan + 1, 4, 16>(bits));
    }
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, Rows<L> (&s)[8], Rows<L> (&m)[8]) {
    const Rows<L> d = load_halves<L>(chunk + kChunk.d_at());
    const Rows<L> minus_dmin = negate(load_halves<L>(chunk + kChunk.dmin_at()));
    Unit<L> v[4];
    unpack_six_bits(chunk + kChunk.scales_at(), v);
    scale_four<0>(v[0], d, s);
    scale_four<0>(v[1], d, s + 4);
    scale_four<0>(v[2], minus_dmin, m);
    scale_four<0>(v[3], minus_dmin, m + 4);
  }
};

template <class L>
using Q4_K = Q45_K<L, kQ4_KChunk>;
template <class L>
using Q5_K = Q45_K<L, kQ5_KChunk>;

template <class L>
struct Q6_K {
  using Lanes = L;
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ6_KChunk.bytes();
  static constexpr int kSubBlocks = 2;
  static constexpr bool kHasMin = false;
  static constexpr int kShift = 2;
  static constexpr int kFlush = 2;
  static constexpr int kSpanBlocks = 4, kSteps = 8, kCodes = 4;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Unit<L> (&u)[4]) {
    const Unit<L> x0 = load_unit<L>(chunk + (kSpan * 16 + kStep) * kUnitBytes);
    const Unit<L> x1 = load_unit<L>(chunk + (kSpan * 16 + 8 + kStep) * kUnitBytes);
    const Unit<L> h = load_unit<L>(chunk + kQ6_KChunk.high_at() + (kSpan * 8 + kStep) * kUnitBytes);
    u[0] = unite(take_bits<0, 0, 15>(x0), take_bits<0, 4, 48>(h));
    u[1] = unite(take_bits<0, 0, 15>(x1), take_bits<2, 4, 48>(h));
    u[2] = unite(take_bits<4, 0, 15>(x0), take_bits<4, 4, 48>(h));
    u[3] = unite(take_bits<4, 0, 15>(x1), take_bits<6, 4, 48>(h));
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, Rows<L> (&s)[16], Rows<L> (&)[16]) {
    const Rows<L> d = load_halves<L>(chunk + kQ6_KChunk.d_at());
    MEMDECAY_UNROLL
    for (int sub = 0; sub < 16; ++sub) {
      s[sub] = scale_signed_bytes(chunk + kQ6_KChunk.scales_at() + 16 * sub, d);
    }
  }
};

template <class L>
struct Q2_K {
  using Lanes = L;
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ2_KChunk.bytes();
  static constexpr int kSubBlocks = 2;
  static constexpr bool kHasMin = true;
  static constexpr int kShift = 0;
  static constexpr int kFlush = 4;
  static constexpr int kSpanBlocks = 4, kSteps = 8, kCodes = 4;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Unit<L> (&u)[4]) {
    const Unit<L> x = load_unit<L>(chunk + (kSpan * 8 + kStep) * kUnitBytes);
    u[0] = take_bits<0, 0, 3>(x);
    u[1] = take_bits<2, 0, 3>(x);
    u[2] = take_bits<4, 0, 3>(x);
    u[3] = take_bits<6, 0, 3>(x);
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, Rows<L> (&s)[16], Rows<L> (&m)[16]) {
    const Rows<L> d = load_halves<L>(chunk + kQ2_KChunk.d_at());
    const Rows<L> minus_dmin = negate(load_halves<L>(chunk + kQ2_KChunk.dmin_at()));
    MEMDECAY_UNROLL
    for (int sub = 0; sub < 16; ++sub) {
      const std::byte* both = chunk + kQ2_KChunk.scales_at() + 16 * sub;
      s[sub] = scale_low_nibbles(both, d);
      m[sub] = scale_high_nibbles(both, minus_dmin);
    }
  }
};

template <class L>
struct Q3_K {
  using Lanes = L;
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ3_KChunk.bytes();
  static constexpr int kSubBlocks = 2;
  static constexpr bool kHasMin = false;
  static constexpr int kShift = 5;
  static constexpr int kFlush = 4;
  static constexpr int kSpanBlocks = 4, kSteps = 8, kCodes = 4;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Unit<L> (&u)[4]) {
    const Unit<L> x = load_unit<L>(chunk + (kSpan * 8 + kStep) * kUnitBytes);
    const Unit<L> h = load_unit<L>(chunk + kQ3_KChunk.high_at() + kStep * kUnitBytes);
    u[0] = unite(take_bits<0, 0, 3>(x), take_bits<4 * kSpan, 2, 4>(h));
    u[1] = unite(take_bits<2, 0, 3>(x), take_bits<4 * kSpan + 1, 2, 4>(h));
    u[2] = unite(take_bits<4, 0, 3>(x), take_bits<4 * kSpan + 2, 2, 4>(h));
    u[3] = unite(take_bits<6, 0, 3>(x), take_bits<4 * kSpan + 3, 2, 4>(h));
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, Rows<L> (&s)[16], Rows<L> (&)[16]) {
    const Rows<L> d = load_halves<L>(chunk + kQ3_KChunk.d_at());
    Unit<L> v[4];
    unpack_six_bits(chunk + kQ3_KChunk.scales_at(), v);
    MEMDECAY_UNROLL
    for (int part = 0; part < 4; ++part) scale_four<32>(v[part], d, s + 4 * part);
  }
};

}  // namespace
}  // namespace memdecay
