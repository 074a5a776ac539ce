// Rows and Unit: one number of each of a panel's 16 rows, and 64 bytes of its codes, as vectors of
// any width.
//
// Included inside a target region.
#pragma once

namespace memdecay {
namespace {

/// Vectors that 16 rows, or 64 bytes, take.
template <class L>
inline constexpr int kParts = kPanelRows / L::kWidth;

template <class L>
struct Rows {
  typename L::Floats part[extent(kParts<L>)];

  static MEMDECAY_INLINE Rows zero() {
    Rows rows;
    MEMDECAY_UNROLL
    for (int i = 0; i < kParts<L>; ++i) rows.part[i] = L::zero();
    return rows;
  }
  static MEMDECAY_INLINE Rows load(const float* from) {
    Rows rows;
    MEMDECAY_UNROLL
    for (int i = 0; i < kParts<L>; ++i) rows.part[i] = L::load(from + i * L::kWidth);
    return rows;
  }
  MEMDECAY_INLINE void store(float* to) const {
    MEMDECAY_UNROLL
    for (int i = 0; i < kParts<L>; ++i) L::store(to + i * L::kWidth, part[i]);
  }
  MEMDECAY_INLINE Rows times(float factor) const {
    Rows rows;
    MEMDECAY_UNROLL
    for (int i = 0; i < kParts<L>; ++i) rows.part[i] = L::mul(part[i], L::set(factor));
    return rows;
  }
};

template <class L>
MEMDECAY_INLINE Rows<L> load_halves(const std::byte* p) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(p);
  Rows<L> rows;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) rows.part[i] = L::load_half(halves + i * L::kWidth);
  return rows;
}

template <class L>
MEMDECAY_INLINE Rows<L> negate(const Rows<L>& x) {
  Rows<L> rows;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) rows.part[i] = L::sub(L::zero(), x.part[i]);
  return rows;
}

/// d times the numbers that `ints` makes of each row's byte: a lambda with [&], since those without
/// become function pointers too, which g++ compiles for no instruction set.
template <class L, class Ints>
MEMDECAY_INLINE Rows<L> scale_bytes(const std::byte* p, const Rows<L>& d, const Ints& ints) {
  Rows<L> rows;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) {
    rows.part[i] = L::mul(d.part[i], L::to_floats(ints(p + i * L::kWidth)));
  }
  return rows;
}

template <class L>
MEMDECAY_INLINE Rows<L> scale_signed_bytes(const std::byte* p, const Rows<L>& d) {
  return scale_bytes(p, d, [&](const std::byte* bytes) { return L::widen_signed(bytes); });
}

template <class L>
MEMDECAY_INLINE Rows<L> scale_low_nibbles(const std::byte* p, const Rows<L>& d) {
  return scale_bytes(p, d, [&](const std::byte* bytes) {
    return L::bit_and(L::widen_unsigned(bytes), L::set_words(15));
  });
}

template <class L>
MEMDECAY_INLINE Rows<L> scale_high_nibbles(const std::byte* p, const Rows<L>& d) {
  return scale_bytes(p, d, [&](const std::byte* bytes) {
    return L::template shift_right<4>(L::widen_unsigned(bytes));
  });
}

template <class L>
struct Unit {
  typename L::Words part[extent(kParts<L>)];
};

template <class L>
MEMDECAY_INLINE Unit<L> load_unit(const std::byte* p) {
  Unit<L> unit;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) unit.part[i] = L::load_words(p + 4 * i * L::kWidth);
  return unit;
}

/// Moves bits kFrom.. of every byte to kTo.. and keeps those in kMask.
template <int kFrom, int kTo, int kMask, class L>
MEMDECAY_INLINE Unit<L> take_bits(const Unit<L>& x) {
  Unit<L> taken = x;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) {
    if constexpr (kFrom < kTo) taken.part[i] = L::template shift_left<kTo - kFrom>(taken.part[i]);
    if constexpr (kFrom > kTo) taken.part[i] = L::template shift_right<kFrom - kTo>(taken.part[i]);
    taken.part[i] = L::bit_and(taken.part[i], L::set_bytes(kMask));
  }
  return taken;
}

template <class L>
MEMDECAY_INLINE Unit<L> unite(const Unit<L>& a, const Unit<L>& b) {
  Unit<L> both;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) both.part[i] = L::bit_or(a.part[i], b.part[i]);
  return both;
}

template <class L>
MEMDECAY_INLINE Unit<L> flip_signs(const Unit<L>& x) {
  Unit<L> flipped;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) {
    flipped.part[i] = L::bit_xor(x.part[i], L::set_bytes(0x80));
  }
  return flipped;
}

/// IQ4_NL's values plus 128.
template <class L>
MEMDECAY_INLINE Unit<L> look_up_iq4_nl(const Unit<L>& codes) {
  const __m128i table =
      _mm_setr_epi8(1, 24, 45, 63, 79, 93, 106, 118, static_cast<char>(129), static_cast<char>(141),
                    static_cast<char>(153), static_cast<char>(166), static_cast<char>(181),
                    static_cast<char>(197), static_cast<char>(217), static_cast<char>(241));
  Unit<L> values;
  MEMDECAY_UNROLL
  for (int i = 0; i < kParts<L>; ++i) values.part[i] = L::look_up(table, codes.part[i]);
  return values;
}

template <int kSubBlock, int kPart, class L>
MEMDECAY_INLINE void scale_part(const Unit<L>& bytes, typename L::Words bias, const Rows<L>& d,
                                Rows<L>* out) {
  if constexpr (kPart < kParts<L>) {
    const typename L::Words ints =
        L::template widen_unsigned<16 * kSubBlock + kPart * L::kWidth>(bytes.part);
    out->part[kPart] = L::mul(d.part[kPart], L::to_floats(L::add_words(ints, bias)));
    scale_part<kSubBlock, kPart + 1>(bytes, bias, d, out);
  }
}

/// 16 rows of four sub-blocks: (byte - kBias) * d.
template <int kBias, int kSubBlock = 0, class L>
MEMDECAY_INLINE void scale_four(const Unit<L>& bytes, const Rows<L>& d, Rows<L>* out) {
  if constexpr (kSubBlock < 4) {
    scale_part<kSubBlock, 0>(bytes, L::set_words(-kBias), d, out + kSubBlock);
    scale_four<kBias, kSubBlock + 1>(bytes, d, out);
  }
}

}  // namespace
}  // namespace memdecay
