// Sixteen floats at a time: the few operations that the generic kernels are written in.
//
// Included inside the avx512 region only, so everything here has internal linkage.
#pragma once

namespace memdecay::avx512 {
namespace {

struct Lanes {
  using Floats = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kMaxRows = 12;  ///< query rows of one register tile (24 of 32 registers)
  /// Vectors of slots that a register tile of `rows` query rows spans when it reads pages.
  static constexpr int slot_vectors(int rows) { return rows <= 3 ? 8 : rows <= 6 ? 4 : 2; }

  static Floats zero() { return _mm512_setzero_ps(); }
  static Floats set(float x) { return _mm512_set1_ps(x); }
  static Floats load(const float* x) { return _mm512_loadu_ps(x); }
  static Floats load_half(const std::uint16_t* x) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
  }
  static void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  /// The larger one; b where either is not a number.
  static Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  /// x * 2^n, where `magic` is n + 1.5 * 2^23.
  static Floats scale_by_power(Floats x, Floats magic) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x),
                                                _mm512_slli_epi32(_mm512_castps_si512(magic), 23)));
  }
  /// The same, but 0 where key < limit.
  static Floats scale_by_power_or_zero(Floats x, Floats magic, Floats key, float limit) {
    const __mmask16 keep = _mm512_cmp_ps_mask(key, set(limit), _CMP_NLT_UQ);
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(
        keep, _mm512_castps_si512(x), _mm512_slli_epi32(_mm512_castps_si512(magic), 23)));
  }
  /// x, but `other` where key == value.
  static Floats replace_equal(Floats x, Floats key, float value, Floats other) {
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(key, set(value), _CMP_EQ_OQ), other);
  }
  /// x, but 0 where key is below the limit or not a number.
  static Floats zero_unless_above(Floats x, Floats key, float limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(key, set(limit), _CMP_GE_OQ), x);
  }
  /// x in the lanes [begin, end), `other` elsewhere; bounds may lie outside [0, kWidth].
  static Floats keep_range(Floats x, int begin, int end, Floats other) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __mmask16 from = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(begin));
    return _mm512_mask_mov_ps(other,
                              _mm512_mask_cmplt_epi32_mask(from, lane, _mm512_set1_epi32(end)), x);
  }
  /// Bit i: x[i] > limit.
  static unsigned above(Floats x, Floats limit) { return _mm512_cmp_ps_mask(x, limit, _CMP_GT_OQ); }
  static float max_lane(Floats x) { return _mm512_reduce_max_ps(x); }
  /// The two halves of 16 lanes added; both arguments are those 16.
  static __m256 fold(Floats x, Floats) {
    return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  }
  /// The larger one of the two halves of 16 lanes.
  static __m256 fold_max(Floats x) {
    return _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  }
  /// The first kWidth of 16 lanes.
  static Floats join(__m256 low, __m256 high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  }
  /// (x1, x0, x3, x2, ...)
  static Floats swap_pairs(Floats x) { return _mm512_permute_ps(x, 0xb1); }
  /// x[i / 2] for the first half of x's lanes (half 0) or the second (half 1).
  static Floats repeat_pairs(Floats x, int half) {
    const __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(_mm512_add_epi32(low, _mm512_set1_epi32(8 * half)), x);
  }
  /// a * b - c in even lanes, a * b + c in odd ones.
  static Floats fma_alternate(Floats a, Floats b, Floats c) { return _mm512_fmaddsub_ps(a, b, c); }

  // ---- integers

  static constexpr int kMostSums = 24;  ///< of integer products that registers hold at once
  using Words = __m512i;
  static Words zero_words() { return _mm512_setzero_si512(); }
  static Words set_words(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Words load_words(const std::byte* x) { return _mm512_loadu_si512(x); }
  /// Pair kPair of a word's codes as two 16-bit numbers.
  template <int kBits, int kPair>
  static Words code_pair(Words words) {
    const __m512i mask = _mm512_set1_epi16((1 << kBits) - 1);
    if constexpr (kPair == 0) return _mm512_and_si512(words, mask);
    const __m512i moved = _mm512_srli_epi16(words, kBits * kPair);
    if constexpr ((kPair + 1) * kBits == 16) return moved;
    return _mm512_and_si512(moved, mask);
  }
  static Words set_pair(const std::int16_t* factors) {
    std::int32_t both;
    std::memcpy(&both, factors, sizeof(both));
    return _mm512_set1_epi32(both);
  }
  /// sum + a0 * b0 + a1 * b1 over the two halves of each lane.
  static MEMDECAY_INLINE Words add_pair_products(Words sum, Words a, Words b) {
    // Not the intrinsic: clang 19 takes it apart into a product and a sum to shorten chains.
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static Floats to_floats(Words x) { return _mm512_cvtepi32_ps(x); }
  /// Two vectors as 16-bit integers, rounded to nearest even.
  static void store_factors(std::int16_t* to, Floats low, Floats high) {
    const __m512i mixed = _mm512_packs_epi32(_mm512_cvtps_epi32(low), _mm512_cvtps_epi32(high));
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi64(order, mixed));
  }

  // ---- weights and activations

  static constexpr int kFloatPanels = 2;    ///< of a register tile over float weights
  static constexpr int kFloatColumns = 12;  ///< likewise
  static Floats load_bfloat(const std::uint16_t* x) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
  }
  /// The first `count` lanes, of which there may be fewer than none or more than all: the others
  /// are 0, and their memory is not touched.
  static Floats load_first(const float* x, int count) {
    return _mm512_maskz_loadu_ps(first_lanes(count), x);
  }
  static void store_first(float* to, int count, Floats x) {
    _mm512_mask_storeu_ps(to, first_lanes(count), x);
  }
  static Floats abs(Floats x) { return _mm512_abs_ps(x); }
  /// Rounded to nearest even.
  static Words to_ints(Floats x) { return _mm512_cvtps_epi32(x); }
  static Words add_words(Words a, Words b) { return _mm512_add_epi32(a, b); }
  static std::int32_t sum_words(Words x) { return _mm512_reduce_add_epi32(x); }
  /// 32 words as bytes.
  static void store_bytes(std::int8_t* to, const Words (&x)[2]) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(x[0]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), _mm512_cvtepi32_epi8(x[1]));
  }
  static Words set_bytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Words bit_and(Words a, Words b) { return _mm512_and_si512(a, b); }
  static Words bit_or(Words a, Words b) { return _mm512_or_si512(a, b); }
  static Words bit_xor(Words a, Words b) { return _mm512_xor_si512(a, b); }
  /// Within halves of words.
  template <int kBits>
  static Words shift_left(Words x) {
    return _mm512_slli_epi16(x, kBits);
  }
  template <int kBits>
  static Words shift_right(Words x) {
    return _mm512_srli_epi16(x, kBits);
  }
  /// table[x] for every byte x < 16.
  static Words look_up(__m128i table, Words x) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), x);
  }
  /// kWidth bytes as words.
  static Words widen_signed(const std::byte* x) { return _mm512_cvtepi8_epi32(load_bytes(x)); }
  static Words widen_unsigned(const std::byte* x) { return _mm512_cvtepu8_epi32(load_bytes(x)); }
  /// kWidth of 64 bytes, from kByte on.
  template <int kByte>
  static Words widen_unsigned(const Words (&x)[1]) {
    return _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(x[0], kByte / 16));
  }

 private:
  static __mmask16 first_lanes(int count) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(count));
  }
  static __m128i load_bytes(const std::byte* x) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  }
};

}  // namespace
}  // namespace memdecay::avx512
