// 2^x and e^x for vectors of floats, by a polynomial of degree 5 on [-0.5, 0.5].
//
// Relative error below 4e-7; exactly 1 at 0; a NaN stays a NaN. The integer part is found by adding
// 1.5 * 2^23, which leaves it in the low bits of the sum. The coefficients are a weighted
// least-squares (Lawson) fit of the relative error with the constant term held at 1.
// Included inside a target region.
#pragma once

namespace memdecay {
namespace {

inline constexpr float kRoundingMagic = 12582912.0f;

/// 2^fraction for fraction in [-0.5, 0.5].
template <typename L>
MEMDECAY_INLINE typename L::Floats exp2_fraction(typename L::Floats fraction) {
  typename L::Floats p = L::set(0.001326472731307149f);
  p = L::fma(p, fraction, L::set(0.009671512991189957f));
  p = L::fma(p, fraction, L::set(0.05550733581185341f));
  p = L::fma(p, fraction, L::set(0.24022242426872253f));
  p = L::fma(p, fraction, L::set(0.6931470036506653f));
  return L::fma(p, fraction, L::set(1.0f));
}

/// 2^x for x <= 0; exactly 0 below -126, so also for minus infinity.
template <typename L>
MEMDECAY_INLINE typename L::Floats exp2_nonpositive(typename L::Floats x) {
  const typename L::Floats rounded = L::add(x, L::set(kRoundingMagic));
  const typename L::Floats fraction = L::sub(x, L::sub(rounded, L::set(kRoundingMagic)));
  return L::scale_by_power_or_zero(exp2_fraction<L>(fraction), rounded, x, -126.0f);
}

/// e^x, held between 2^-126 and 2^127.
template <typename L>
MEMDECAY_INLINE typename L::Floats exp_clamped(typename L::Floats x) {
  constexpr float kLog2eHigh = 1.44269502162933349609f;
  constexpr float kLog2eLow = 1.92596299112661746887e-8f;
  // The smallest and largest floats whose product with log2 e rounds into [-126, 127].
  const typename L::Floats clamped = L::min(L::set(88.0296f), L::max(L::set(-87.3365f), x));
  const typename L::Floats rounded = L::fma(clamped, L::set(kLog2eHigh), L::set(kRoundingMagic));
  const typename L::Floats whole = L::sub(rounded, L::set(kRoundingMagic));
  typename L::Floats fraction = L::fma(clamped, L::set(kLog2eHigh), L::sub(L::zero(), whole));
  fraction = L::fma(clamped, L::set(kLog2eLow), fraction);
  return L::scale_by_power(exp2_fraction<L>(fraction), rounded);
}

}  // namespace
}  // namespace memdecay
