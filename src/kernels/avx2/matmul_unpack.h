// What AVX2 makes of the weight types: matmul_types.h over pairs of 32-byte vectors, rows 0 to 7
// and rows 8 to 15.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul_unroll.h"
#include "quant/panel_layout.h"

#include "kernels/target_avx2.h"

namespace memdecay::avx2 {

struct Unit {
  __m256i half[2];
};

struct Rows {
  __m256 half[2];
};

MEMDECAY_INLINE __m256i load_32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

MEMDECAY_INLINE Unit load_unit(const std::byte* p) {
  return {{load_32(p), load_32(p + 32)}};
}

template <int kFrom, int kTo, int kMask>
MEMDECAY_INLINE __m256i take_bits(__m256i x) {
  if constexpr (kFrom < kTo) x = _mm256_slli_epi16(x, kTo - kFrom);
  if constexpr (kFrom > kTo) x = _mm256_srli_epi16(x, kFrom - kTo);
  return _mm256_and_si256(x, _mm256_set1_epi8(static_cast<char>(kMask)));
}

/// Moves bits kFrom.. of every byte to kTo.. and keeps those in kMask.
template <int kFrom, int kTo, int kMask>
MEMDECAY_INLINE Unit take_bits(Unit x) {
  return {{take_bits<kFrom, kTo, kMask>(x.half[0]), take_bits<kFrom, kTo, kMask>(x.half[1])}};
}

MEMDECAY_INLINE Unit unite(Unit a, Unit b) {
  return {{_mm256_or_si256(a.half[0], b.half[0]), _mm256_or_si256(a.half[1], b.half[1])}};
}

MEMDECAY_INLINE __m256i flip_signs(__m256i x) {
  return _mm256_xor_si256(x, _mm256_set1_epi8(static_cast<char>(0x80)));
}

MEMDECAY_INLINE Unit flip_signs(Unit x) {
  return {{flip_signs(x.half[0]), flip_signs(x.half[1])}};
}

/// IQ4_NL's values plus 128.
MEMDECAY_INLINE Unit look_up_iq4_nl(Unit codes) {
  const __m256i table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, static_cast<char>(129), static_cast<char>(141),
                    static_cast<char>(153), static_cast<char>(166), static_cast<char>(181),
                    static_cast<char>(197), static_cast<char>(217), static_cast<char>(241)));
  return {{_mm256_shuffle_epi8(table, codes.half[0]), _mm256_shuffle_epi8(table, codes.half[1])}};
}

MEMDECAY_INLINE Rows load_halves(const std::byte* p) {
  const __m256i halves = load_32(p);
  return {{_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
           _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))}};
}

MEMDECAY_INLINE Rows negate(Rows x) {
  const __m256 zero = _mm256_setzero_ps();
  return {{_mm256_sub_ps(zero, x.half[0]), _mm256_sub_ps(zero, x.half[1])}};
}

MEMDECAY_INLINE Rows scale_ints(__m256i rows_0_7, __m256i rows_8_15, Rows d) {
  return {{_mm256_mul_ps(d.half[0], _mm256_cvtepi32_ps(rows_0_7)),
           _mm256_mul_ps(d.half[1], _mm256_cvtepi32_ps(rows_8_15))}};
}

MEMDECAY_INLINE __m128i load_8(const std::byte* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}

MEMDECAY_INLINE Rows scale_signed_bytes(const std::byte* p, Rows d) {
  return scale_ints(_mm256_cvtepi8_epi32(load_8(p)), _mm256_cvtepi8_epi32(load_8(p + 8)), d);
}

MEMDECAY_INLINE Rows scale_low_nibbles(const std::byte* p, Rows d) {
  const __m256i mask = _mm256_set1_epi32(15);
  return scale_ints(_mm256_and_si256(_mm256_cvtepu8_epi32(load_8(p)), mask),
                    _mm256_and_si256(_mm256_cvtepu8_epi32(load_8(p + 8)), mask), d);
}

MEMDECAY_INLINE Rows scale_high_nibbles(const std::byte* p, Rows d) {
  return scale_ints(_mm256_srli_epi32(_mm256_cvtepu8_epi32(load_8(p)), 4),
                    _mm256_srli_epi32(_mm256_cvtepu8_epi32(load_8(p + 8)), 4), d);
}

/// 16 rows of four sub-blocks: (byte - kBias) * d.
template <int kBias>
MEMDECAY_INLINE void scale_four(Unit bytes, Rows d, Rows* out) {
  const __m256i bias = _mm256_set1_epi32(kBias);
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256i two = bytes.half[i / 2];
    const __m128i one = i % 2 == 0 ? _mm256_castsi256_si128(two) : _mm256_extracti128_si256(two, 1);
    const __m256i rows_0_7 = _mm256_sub_epi32(_mm256_cvtepu8_epi32(one), bias);
    const __m256i rows_8_15 =
        _mm256_sub_epi32(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(one, one)), bias);
    out[i] = scale_ints(rows_0_7, rows_8_15, d);
  }
}

#include "kernels/matmul_types.h"

}  // namespace memdecay::avx2

#include "kernels/target_end.h"
