// Eight floats at a time: the few operations that the generic kernels are written in.
//
// Included inside the avx2 region only, so everything here has internal linkage.
#pragma once

namespace memdecay::avx2 {
namespace {

struct Lanes {
  using Floats = __m256;
  static constexpr int kWidth = 8;
  static constexpr int kMaxRows = 6;  ///< query rows of one register tile (12 of 16 registers)
  /// Vectors of slots that a register tile of `rows` query rows spans when it reads pages.
  static constexpr int slot_vectors(int rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : 2; }

  static Floats zero() { return _mm256_setzero_ps(); }
  static Floats set(float x) { return _mm256_set1_ps(x); }
  static Floats load(const float* x) { return _mm256_loadu_ps(x); }
  static Floats load_half(const std::uint16_t* x) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  }
  static void store(float* to, Floats x) { _mm256_storeu_ps(to, x); }
  static void store_half(std::uint16_t* to, Floats x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  /// The larger one; b where either is not a number.
  static Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  /// x * 2^n, where `magic` is n + 1.5 * 2^23.
  static Floats scale_by_power(Floats x, Floats magic) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x),
                                                _mm256_slli_epi32(_mm256_castps_si256(magic), 23)));
  }
  /// The same, but 0 where key < limit.
  static Floats scale_by_power_or_zero(Floats x, Floats magic, Floats key, float limit) {
    return _mm256_and_ps(scale_by_power(x, magic), _mm256_cmp_ps(key, set(limit), _CMP_NLT_UQ));
  }
  /// x, but `other` where key == value.
  static Floats replace_equal(Floats x, Floats key, float value, Floats other) {
    return _mm256_blendv_ps(x, other, _mm256_cmp_ps(key, set(value), _CMP_EQ_OQ));
  }
  /// x, but 0 where key is below the limit or not a number.
  static Floats zero_unless_above(Floats x, Floats key, float limit) {
    return _mm256_and_ps(x, _mm256_cmp_ps(key, set(limit), _CMP_GE_OQ));
  }
  /// x in the lanes [begin, end), `other` elsewhere; bounds may lie outside [0, kWidth].
  static Floats keep_range(Floats x, int begin, int end, Floats other) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane);
    const __m256i inside =
        _mm256_andnot_si256(before, _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
    return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(inside));
  }
  /// Bit i: x[i] > limit.
  static unsigned above(Floats x, Floats limit) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, limit, _CMP_GT_OQ)));
  }
  static float max_lane(Floats x) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
  }
  /// The two halves of 16 lanes added.
  static __m256 fold(Floats low, Floats high) { return _mm256_add_ps(low, high); }
  /// (x1, x0, x3, x2, ...)
  static Floats swap_pairs(Floats x) { return _mm256_permute_ps(x, 0xb1); }
  /// x[i / 2] for the first half of x's lanes (half 0) or the second (half 1).
  static Floats repeat_pairs(Floats x, int half) {
    const __m256i low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(x, _mm256_add_epi32(low, _mm256_set1_epi32(4 * half)));
  }
  /// a * b - c in even lanes, a * b + c in odd ones.
  static Floats fma_alternate(Floats a, Floats b, Floats c) { return _mm256_fmaddsub_ps(a, b, c); }

  static constexpr int kMostSums = 8;  ///< of integer products that registers hold at once
  using Words = __m256i;
  static Words zero_words() { return _mm256_setzero_si256(); }
  static Words load_words(const std::byte* x) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  }
  /// Pair kPair of a word's codes as two 16-bit numbers.
  template <int kBits, int kPair>
  static Words code_pair(Words words) {
    const __m256i mask = _mm256_set1_epi16((1 << kBits) - 1);
    if constexpr (kPair == 0) return _mm256_and_si256(words, mask);
    const __m256i moved = _mm256_srli_epi16(words, kBits * kPair);
    if constexpr ((kPair + 1) * kBits == 16) return moved;
    return _mm256_and_si256(moved, mask);
  }
  static Words set_pair(const std::int16_t* factors) {
    std::int32_t both;
    std::memcpy(&both, factors, sizeof(both));
    return _mm256_set1_epi32(both);
  }
  /// sum + a0 * b0 + a1 * b1 over the two halves of each lane.
  static Words add_pair_products(Words sum, Words a, Words b) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
  }
  static Floats to_floats(Words x) { return _mm256_cvtepi32_ps(x); }
  /// Two vectors as 16-bit integers, rounded to nearest even.
  static void store_factors(std::int16_t* to, Floats low, Floats high) {
    const __m256i mixed = _mm256_packs_epi32(_mm256_cvtps_epi32(low), _mm256_cvtps_epi32(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute4x64_epi64(mixed, 0xd8));
  }
};

}  // namespace
}  // namespace memdecay::avx2
