// Products: how AVX2 multiplies a quantized weight type, for generic/matmul.
//
// One column: products of codes below 64 gather in 16 bits (T::kFlush groups at most), byte codes
// use |w| * (sign(w) y), which fits as |w| <= 128 and |y| <= 127. The sums of a block are exact
// integers either way. Many columns: matmul_tile.h. Included inside the avx2 region.
#pragma once

#include "kernels/avx2/matmul_tile.h"

namespace memdecay::avx2 {
namespace {

/// sum += w * y for signed bytes w = u - 128.
MEMDECAY_INLINE __m256i add_signed_products(__m256i sum, __m256i u, __m256i y) {
  const __m256i w = Lanes::bit_xor(u, Lanes::set_bytes(0x80));
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(y, w));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/// Steps whose products gather in 16 bits before they are widened.
template <class T>
inline constexpr int kStreamFlush = std::min({T::kFlush, T::kSteps, 8 / T::kSubBlocks});

template <class T>
struct Products {
  using Weights = T;

  // ---- one column

  /// Signed byte codes are multiplied as they are.
  static constexpr bool kStartsAtOffset = !T::kHasMin && T::kFlush > 1;
  static constexpr bool kUnrollsShortScales = false;

  template <int kStep>
  static MEMDECAY_INLINE void add_products(__m256i codes, __m256i four, __m256i& pairs,
                                           __m256i& sum) {
    if constexpr (T::kFlush == 1) {
      sum = add_signed_products(sum, codes, four);
    } else {
      const __m256i products = _mm256_maddubs_epi16(codes, four);
      pairs = kStep % kStreamFlush<T> == 0 ? products : _mm256_add_epi16(pairs, products);
      if constexpr ((kStep + 1) % kStreamFlush<T> == 0) {
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
      } else {
        keep_in_register(pairs);
      }
    }
  }

  // ---- many columns

  using Shape = TileShape<T>;
  using Unpacked = TilePanel;
  static constexpr int kPanels = 1;
  static constexpr int kColumns = Shape::kColumns;
  static constexpr int kBlocks = kTileBlocks;
  static constexpr int kUnitStride = Shape::kUnitStride;

  static MEMDECAY_INLINE void store_unit(std::uint8_t* out, const Unit<Lanes>& u) {
    if constexpr (Shape::kPlanes) {
      store_plane(out, take_bits<0, 0, 15>(u));
      store_plane(out + kUnitBytes, take_bits<4, 0, 15>(u));
    } else {
      store_plane(out, u);
    }
  }

  template <int kPanelCount, int kColumnCount>
  static MEMDECAY_INLINE void multiply(const Unpacked* panels, const TileColumns& columns,
                                       int blocks, float* const* out, bool first) {
    static_assert(kPanelCount == 1);
    for (int half = 0; half < 2; half += Shape::kHalves) {
      tile<Shape, kColumnCount>(panels[0], half, columns, blocks, out[0], first);
    }
  }

 private:
  static MEMDECAY_INLINE void store_plane(std::uint8_t* out, const Unit<Lanes>& u) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out), u.part[0]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(out + 32), u.part[1]);
  }
};

}  // namespace
}  // namespace memdecay::avx2
