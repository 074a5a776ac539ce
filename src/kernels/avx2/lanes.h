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
  /// What is left of 16 lanes when each half keeps its larger ones: 8 lanes as they are.
  static __m256 fold_max(Floats x) { return x; }
  /// The first kWidth of 16 lanes.
  static Floats join(__m256 low, __m256) { return low; }
  /// (x1, x0, x3, x2, ...)
  static Floats swap_pairs(Floats x) { return _mm256_permute_ps(x, 0xb1); }
  /// x[i / 2] for the first half of x's lanes (half 0) or the second (half 1).
  static Floats repeat_pairs(Floats x, int half) {
    const __m256i low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(x, _mm256_add_epi32(low, _mm256_set1_epi32(4 * half)));
  }
  /// a * b - c in even lanes, a * b + c in odd ones.
  static Floats fma_alternate(Floats a, Floats b, Floats c) { return _mm256_fmaddsub_ps(a, b, c); }

  // ---- integers

  static constexpr int kMostSums = 8;  ///< of integer products that registers hold at once
  using Words = __m256i;
  static Words zero_words() { return _mm256_setzero_si256(); }
  static Words set_words(std::int32_t x) { return _mm256_set1_epi32(x); }
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

  // ---- weights and activations

  static constexpr int kFloatPanels = 1;   ///< of a register tile over float weights
  static constexpr int kFloatColumns = 6;  ///< likewise
  static Floats load_bfloat(const std::uint16_t* x) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  /// The first `count` lanes, of which there may be fewer than none or more than all: the others
  /// are 0, and their memory is not touched.
  static Floats load_first(const float* x, int count) {
    return _mm256_maskload_ps(x, first_lanes(count));
  }
  static void store_first(float* to, int count, Floats x) {
    _mm256_maskstore_ps(to, first_lanes(count), x);
  }
  static Floats abs(Floats x) {
    return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
  }
  /// Rounded to nearest even.
  static Words to_ints(Floats x) { return _mm256_cvtps_epi32(x); }
  static Words add_words(Words a, Words b) { return _mm256_add_epi32(a, b); }
  static std::int32_t sum_words(Words x) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 1)));
  }
  /// 32 words as bytes.
  static void store_bytes(std::int8_t* to, const Words (&x)[4]) {
    // Packing works per 128 bits and leaves the groups of four in the order 0 2 4 6 1 3 5 7.
    const __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
  }
  static Words set_bytes(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Words bit_and(Words a, Words b) { return _mm256_and_si256(a, b); }
  static Words bit_or(Words a, Words b) { return _mm256_or_si256(a, b); }
  static Words bit_xor(Words a, Words b) { return _mm256_xor_si256(a, b); }
  /// Within halves of words.
  template <int kBits>
  static Words shift_left(Words x) {
    return _mm256_slli_epi16(x, kBits);
  }
  template <int kBits>
  static Words shift_right(Words x) {
    return _mm256_srli_epi16(x, kBits);
  }
  /// table[x] for every byte x < 16.
  static Words look_up(__m128i table, Words x) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), x);
  }
  /// kWidth bytes as words.
  static Words widen_signed(const std::byte* x) { return _mm256_cvtepi8_epi32(load_bytes(x)); }
  static Words widen_unsigned(const std::byte* x) { return _mm256_cvtepu8_epi32(load_bytes(x)); }
  /// kWidth of 64 bytes, from kByte on.
  template <int kByte>
  static Words widen_unsigned(const Words (&x)[2]) {
    const Words two = x[kByte / 32];
    const __m128i one =
        kByte % 32 < 16 ? _mm256_castsi256_si128(two) : _mm256_extracti128_si256(two, 1);
    return _mm256_cvtepu8_epi32(kByte % 16 == 0 ? one : _mm_unpackhi_epi64(one, one));
  }

 private:
  static __m256i first_lanes(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static __m128i load_bytes(const std::byte* x) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  }
};

}  // namespace
}  // namespace memdecay::avx2
