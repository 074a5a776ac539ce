// What AVX-512 makes of each weight type: unsigned codes for vpdpbusd and fp32 scales of 16 rows.
//
// A type T states
//   kChunkInputs, kChunkBytes    the chunk of quant/panel_layout.h
//   kSubBlocks                   sub-blocks per 32 inputs that have scales of their own: 1 or 2
//   kHasMin                      w = scale * code + min (min <= 0 in the K types, in m[])
//   kShift                       without mins: w = scale * (code - (128 >> kShift))
//   kSpanBlocks, kSteps, kCodes  a chunk is read in spans of kSpanBlocks blocks of 32 inputs; step
//   j
//                                yields kCodes vectors of codes: with one block in a span, its
//                                groups j, j + kSteps, ...; else group j of each block
// and codes<span, step>(), scales(). Codes are below 256 >> kShift.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/matmul_unroll.h"
#include "quant/panel_layout.h"

#include "kernels/target_avx512.h"

namespace memdecay::avx512 {

using Codes = __m512i;

MEMDECAY_INLINE Codes load_unit(const std::byte* p) {
  return _mm512_loadu_si512(p);
}

/// Moves bits kFrom.. of every byte to kTo.. and keeps those in kMask.
template <int kFrom, int kTo, int kMask>
MEMDECAY_INLINE Codes take_bits(Codes x) {
  if constexpr (kFrom < kTo) x = _mm512_slli_epi16(x, kTo - kFrom);
  if constexpr (kFrom > kTo) x = _mm512_srli_epi16(x, kFrom - kTo);
  return _mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(kMask)));
}

MEMDECAY_INLINE __m512 load_halves(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

template <PairChunk kChunk, bool kTable>
struct PairNibbles {
  static constexpr int kChunkInputs = PairChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kChunk.bytes();
  static constexpr int kSubBlocks = 1;
  static constexpr bool kHasMin = kChunk.has_min;
  static constexpr int kShift = kTable || kHasMin ? 0 : (kChunk.has_bits ? 3 : 4);
  static constexpr int kSpanBlocks = 1, kSteps = 4, kCodes = 2;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Codes (&u)[kCodes]) {
    const Codes x = load_unit(chunk + kSpan * kChunk.code_bytes + kStep * kUnitBytes);
    u[0] = take_bits<0, 0, 15>(x);
    u[1] = take_bits<4, 0, 15>(x);
    if constexpr (kChunk.has_bits) {
      const Codes bits = load_unit(chunk + kChunk.bits_at() + kSpan * kUnitBytes);
      u[0] = _mm512_or_si512(u[0], take_bits<kStep, 4, 16>(bits));
      u[1] = _mm512_or_si512(u[1], take_bits<kStep + 4, 4, 16>(bits));
    }
    if constexpr (kTable) {
      // The values of kIq4NlValues, plus 128.
      const Codes table = _mm512_broadcast_i32x4(_mm_setr_epi8(
          1, 24, 45, 63, 79, 93, 106, 118, static_cast<char>(129), static_cast<char>(141),
          static_cast<char>(153), static_cast<char>(166), static_cast<char>(181),
          static_cast<char>(197), static_cast<char>(217), static_cast<char>(241)));
      u[0] = _mm512_shuffle_epi8(table, u[0]);
      u[1] = _mm512_shuffle_epi8(table, u[1]);
    }
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, __m512 (&s)[2], __m512 (&m)[2]) {
    MEMDECAY_UNROLL
    for (int b = 0; b < 2; ++b) {
      s[b] = load_halves(chunk + kChunk.d_at() + 32 * b);
      if constexpr (kChunk.has_min) m[b] = load_halves(chunk + kChunk.m_at() + 32 * b);
    }
  }
};

using Q4_0 = PairNibbles<kQ4_0Chunk, false>;
using Q4_1 = PairNibbles<kQ4_1Chunk, false>;
using Q5_0 = PairNibbles<kQ5_0Chunk, false>;
using Q5_1 = PairNibbles<kQ5_1Chunk, false>;
using IQ4_NL = PairNibbles<kIQ4_NLChunk, true>;

struct Q8_0 {
  static constexpr int kChunkInputs = PairChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ8_0Chunk.bytes();
  static constexpr int kSubBlocks = 1;
  static constexpr bool kHasMin = false;
  static constexpr int kShift = 0;
  static constexpr int kSpanBlocks = 1, kSteps = 8, kCodes = 1;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Codes (&u)[1]) {
    const Codes x = load_unit(chunk + kSpan * kQ8_0Chunk.code_bytes + kStep * kUnitBytes);
    u[0] = _mm512_xor_si512(x, _mm512_set1_epi8(static_cast<char>(0x80)));
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, __m512 (&s)[2], __m512 (&)[2]) {
    s[0] = load_halves(chunk + kQ8_0Chunk.d_at());
    s[1] = load_halves(chunk + kQ8_0Chunk.d_at() + 32);
  }
};

/// The 256 six-bit values of quant/six_bit_scales.h as bytes.
MEMDECAY_INLINE void unpack_six_bits(const std::byte* planes, Codes (&v)[4]) {
  const Codes low0 = load_unit(planes), low1 = load_unit(planes + 64);
  const Codes high = load_unit(planes + 128);
  v[0] = _mm512_or_si512(take_bits<0, 0, 15>(low0), take_bits<0, 4, 48>(high));
  v[1] = _mm512_or_si512(take_bits<4, 0, 15>(low0), take_bits<2, 4, 48>(high));
  v[2] = _mm512_or_si512(take_bits<0, 0, 15>(low1), take_bits<4, 4, 48>(high));
  v[3] = _mm512_or_si512(take_bits<4, 0, 15>(low1), take_bits<6, 4, 48>(high));
}

template <int kPart>
MEMDECAY_INLINE __m512i widen_part(Codes bytes) {
  return _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, kPart));
}

/// Four sub-blocks' worth of six-bit values, less kBias, times d.
template <int kBias>
MEMDECAY_INLINE void scale_four(Codes bytes, __m512 d, __m512* out) {
  const __m512i bias = _mm512_set1_epi32(kBias);
  const __m512i parts[4] = {widen_part<0>(bytes), widen_part<1>(bytes), widen_part<2>(bytes),
                            widen_part<3>(bytes)};
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m512i part = kBias == 0 ? parts[i] : _mm512_sub_epi32(parts[i], bias);
    out[i] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(part));
  }
}

template <SuperChunk kChunk>
struct Q45_K {
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kChunk.bytes();
  static constexpr int kSubBlocks = 1;
  static constexpr bool kHasMin = true;
  static constexpr int kShift = 0;
  static constexpr int kSpanBlocks = 2, kSteps = 8, kCodes = 2;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Codes (&u)[2]) {
    const Codes x = load_unit(chunk + (kSpan * 8 + kStep) * kUnitBytes);
    u[0] = take_bits<0, 0, 15>(x);
    u[1] = take_bits<4, 0, 15>(x);
    if constexpr (kChunk.high_bytes != 0) {
      const Codes bits = load_unit(chunk + kChunk.high_at() + kStep * kUnitBytes);
      u[0] = _mm512_or_si512(u[0], take_bits<2 * kSpan, 4, 16>(bits));
      u[1] = _mm512_or_si512(u[1], take_bits<2 * kSpan + 1, 4, 16>(bits));
    }
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, __m512 (&s)[8], __m512 (&m)[8]) {
    const __m512 d = load_halves(chunk + kChunk.d_at());
    const __m512 minus_dmin =
        _mm512_sub_ps(_mm512_setzero_ps(), load_halves(chunk + kChunk.dmin_at()));
    Codes v[4];
    unpack_six_bits(chunk + kChunk.scales_at(), v);
    scale_four<0>(v[0], d, s);
    scale_four<0>(v[1], d, s + 4);
    scale_four<0>(v[2], minus_dmin, m);
    scale_four<0>(v[3], minus_dmin, m + 4);
  }
};

using Q4_K = Q45_K<kQ4_KChunk>;
using Q5_K = Q45_K<kQ5_KChunk>;

struct Q6_K {
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ6_KChunk.bytes();
  static constexpr int kSubBlocks = 2;
  static constexpr bool kHasMin = false;
  static constexpr int kShift = 2;
  static constexpr int kSpanBlocks = 4, kSteps = 8, kCodes = 4;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Codes (&u)[4]) {
    const Codes x0 = load_unit(chunk + (kSpan * 16 + kStep) * kUnitBytes);
    const Codes x1 = load_unit(chunk + (kSpan * 16 + 8 + kStep) * kUnitBytes);
    const Codes h = load_unit(chunk + kQ6_KChunk.high_at() + (kSpan * 8 + kStep) * kUnitBytes);
    u[0] = _mm512_or_si512(take_bits<0, 0, 15>(x0), take_bits<0, 4, 48>(h));
    u[1] = _mm512_or_si512(take_bits<0, 0, 15>(x1), take_bits<2, 4, 48>(h));
    u[2] = _mm512_or_si512(take_bits<4, 0, 15>(x0), take_bits<4, 4, 48>(h));
    u[3] = _mm512_or_si512(take_bits<4, 0, 15>(x1), take_bits<6, 4, 48>(h));
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, __m512 (&s)[16], __m512 (&)[16]) {
    const __m512 d = load_halves(chunk + kQ6_KChunk.d_at());
    MEMDECAY_UNROLL
    for (int sub = 0; sub < 16; ++sub) {
      const __m128i bytes = _mm_loadu_si128(
          reinterpret_cast<const __m128i*>(chunk + kQ6_KChunk.scales_at() + 16 * sub));
      s[sub] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
    }
  }
};

struct Q2_K {
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ2_KChunk.bytes();
  static constexpr int kSubBlocks = 2;
  static constexpr bool kHasMin = true;
  static constexpr int kShift = 0;
  static constexpr int kSpanBlocks = 4, kSteps = 8, kCodes = 4;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Codes (&u)[4]) {
    const Codes x = load_unit(chunk + (kSpan * 8 + kStep) * kUnitBytes);
    u[0] = take_bits<0, 0, 3>(x);
    u[1] = take_bits<2, 0, 3>(x);
    u[2] = take_bits<4, 0, 3>(x);
    u[3] = take_bits<6, 0, 3>(x);
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, __m512 (&s)[16], __m512 (&m)[16]) {
    const __m512 d = load_halves(chunk + kQ2_KChunk.d_at());
    const __m512 minus_dmin =
        _mm512_sub_ps(_mm512_setzero_ps(), load_halves(chunk + kQ2_KChunk.dmin_at()));
    MEMDECAY_UNROLL
    for (int sub = 0; sub < 16; ++sub) {
      const __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128(
          reinterpret_cast<const __m128i*>(chunk + kQ2_KChunk.scales_at() + 16 * sub)));
      const __m512i scale = _mm512_and_si512(both, _mm512_set1_epi32(15));
      s[sub] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale));
      m[sub] = _mm512_mul_ps(minus_dmin, _mm512_cvtepi32_ps(_mm512_srli_epi32(both, 4)));
    }
  }
};

struct Q3_K {
  static constexpr int kChunkInputs = SuperChunk::kInputs;
  static constexpr std::size_t kChunkBytes = kQ3_KChunk.bytes();
  static constexpr int kSubBlocks = 2;
  static constexpr bool kHasMin = false;
  static constexpr int kShift = 5;
  static constexpr int kSpanBlocks = 4, kSteps = 8, kCodes = 4;

  template <int kSpan, int kStep>
  static MEMDECAY_INLINE void codes(const std::byte* chunk, Codes (&u)[4]) {
    const Codes x = load_unit(chunk + (kSpan * 8 + kStep) * kUnitBytes);
    const Codes h = load_unit(chunk + kQ3_KChunk.high_at() + kStep * kUnitBytes);
    u[0] = _mm512_or_si512(take_bits<0, 0, 3>(x), take_bits<4 * kSpan, 2, 4>(h));
    u[1] = _mm512_or_si512(take_bits<2, 0, 3>(x), take_bits<4 * kSpan + 1, 2, 4>(h));
    u[2] = _mm512_or_si512(take_bits<4, 0, 3>(x), take_bits<4 * kSpan + 2, 2, 4>(h));
    u[3] = _mm512_or_si512(take_bits<6, 0, 3>(x), take_bits<4 * kSpan + 3, 2, 4>(h));
  }

  static MEMDECAY_INLINE void scales(const std::byte* chunk, __m512 (&s)[16], __m512 (&)[16]) {
    const __m512 d = load_halves(chunk + kQ3_KChunk.d_at());
    Codes v[4];
    unpack_six_bits(chunk + kQ3_KChunk.scales_at(), v);
    MEMDECAY_UNROLL
    for (int part = 0; part < 4; ++part) scale_four<32>(v[part], d, s + 4 * part);
  }
};

}  // namespace memdecay::avx512

#include "kernels/target_end.h"
