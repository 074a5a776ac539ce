// What AVX-512 makes of the weight types: matmul_types.h over vectors of 64 bytes.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/matmul_unroll.h"
#include "quant/panel_layout.h"

#include "kernels/target_avx512.h"

namespace memdecay::avx512 {

using Unit = __m512i;
using Rows = __m512;

MEMDECAY_INLINE Unit load_unit(const std::byte* p) {
  return _mm512_loadu_si512(p);
}

/// Moves bits kFrom.. of every byte to kTo.. and keeps those in kMask.
template <int kFrom, int kTo, int kMask>
MEMDECAY_INLINE Unit take_bits(Unit x) {
  if constexpr (kFrom < kTo) x = _mm512_slli_epi16(x, kTo - kFrom);
  if constexpr (kFrom > kTo) x = _mm512_srli_epi16(x, kFrom - kTo);
  return _mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(kMask)));
}

MEMDECAY_INLINE Unit unite(Unit a, Unit b) {
  return _mm512_or_si512(a, b);
}

MEMDECAY_INLINE Unit flip_signs(Unit x) {
  return _mm512_xor_si512(x, _mm512_set1_epi8(static_cast<char>(0x80)));
}

/// IQ4_NL's values plus 128.
MEMDECAY_INLINE Unit look_up_iq4_nl(Unit codes) {
  const Unit table = _mm512_broadcast_i32x4(
      _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, static_cast<char>(129), static_cast<char>(141),
                    static_cast<char>(153), static_cast<char>(166), static_cast<char>(181),
                    static_cast<char>(197), static_cast<char>(217), static_cast<char>(241)));
  return _mm512_shuffle_epi8(table, codes);
}

MEMDECAY_INLINE Rows load_halves(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

MEMDECAY_INLINE Rows negate(Rows x) {
  return _mm512_sub_ps(_mm512_setzero_ps(), x);
}

MEMDECAY_INLINE Rows scale_ints(__m512i ints, Rows d) {
  return _mm512_mul_ps(d, _mm512_cvtepi32_ps(ints));
}

MEMDECAY_INLINE __m128i load_16(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

MEMDECAY_INLINE Rows scale_signed_bytes(const std::byte* p, Rows d) {
  return scale_ints(_mm512_cvtepi8_epi32(load_16(p)), d);
}

MEMDECAY_INLINE Rows scale_low_nibbles(const std::byte* p, Rows d) {
  const __m512i bytes = _mm512_cvtepu8_epi32(load_16(p));
  return scale_ints(_mm512_and_si512(bytes, _mm512_set1_epi32(15)), d);
}

MEMDECAY_INLINE Rows scale_high_nibbles(const std::byte* p, Rows d) {
  return scale_ints(_mm512_srli_epi32(_mm512_cvtepu8_epi32(load_16(p)), 4), d);
}

/// 16 rows of four sub-blocks: (byte - kBias) * d.
template <int kBias>
MEMDECAY_INLINE void scale_four(Unit bytes, Rows d, Rows* out) {
  const __m512i bias = _mm512_set1_epi32(kBias);
  const __m128i parts[4] = {
      _mm512_extracti32x4_epi32(bytes, 0), _mm512_extracti32x4_epi32(bytes, 1),
      _mm512_extracti32x4_epi32(bytes, 2), _mm512_extracti32x4_epi32(bytes, 3)};
  MEMDECAY_UNROLL
  for (int i = 0; i < 4; ++i) {
    out[i] = scale_ints(_mm512_sub_epi32(_mm512_cvtepu8_epi32(parts[i]), bias), d);
  }
}

#include "kernels/matmul_types.h"

}  // namespace memdecay::avx512

#include "kernels/target_end.h"
