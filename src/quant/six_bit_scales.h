// The 6-bit scales of Q3_K, Q4_K and Q5_K: how GGUF packs those of one row's super-block into 12
// bytes, and the planes into which panels put those of 16 rows. Exact both ways. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memdecay {

/// Q4_K, Q5_K: scales of the 8 sub-blocks, then their 8 mins. Q3_K: scales (+32) of its 16
/// sub-blocks.
using SixBitScales = std::array<std::uint8_t, 16>;

/// Words of four 6-bit values, a byte each.
using SixBitWords = std::array<std::uint32_t, 4>;

inline SixBitScales scales_from_words(const SixBitWords& words) {
  SixBitScales scales;
  std::memcpy(scales.data(), words.data(), scales.size());
  return scales;
}

inline SixBitScales unpack_scales_mins(const std::byte* packed) {
  std::array<std::uint32_t, 3> w{};
  std::memcpy(w.data(), packed, 12);
  constexpr std::uint32_t kLow6 = 0x3f3f3f3f, kLow4 = 0x0f0f0f0f, kHigh2 = 0x30303030;
  return scales_from_words({w[0] & kLow6, (w[2] & kLow4) | ((w[0] >> 2) & kHigh2), w[1] & kLow6,
                            ((w[2] >> 4) & kLow4) | ((w[1] >> 2) & kHigh2)});
}

inline void pack_scales_mins(const SixBitScales& scales, std::byte* packed) {
  SixBitWords v{};
  std::memcpy(v.data(), scales.data(), scales.size());
  constexpr std::uint32_t kLow4 = 0x0f0f0f0f, kHigh2 = 0x30303030;
  const std::array<std::uint32_t, 3> w = {v[0] | ((v[1] & kHigh2) << 2),
                                          v[2] | ((v[3] & kHigh2) << 2),
                                          (v[1] & kLow4) | ((v[3] & kLow4) << 4)};
  std::memcpy(packed, w.data(), 12);
}

inline SixBitScales unpack_q3_scales(const std::byte* packed) {
  std::array<std::uint32_t, 3> w{};
  std::memcpy(w.data(), packed, 12);
  constexpr std::uint32_t kLow4 = 0x0f0f0f0f, kLow2 = 0x03030303;
  return scales_from_words({(w[0] & kLow4) | ((w[2] & kLow2) << 4),
                            (w[1] & kLow4) | (((w[2] >> 2) & kLow2) << 4),
                            ((w[0] >> 4) & kLow4) | (((w[2] >> 4) & kLow2) << 4),
                            ((w[1] >> 4) & kLow4) | (((w[2] >> 6) & kLow2) << 4)});
}

inline void pack_q3_scales(const SixBitScales& scales, std::byte* packed) {
  SixBitWords v{};
  std::memcpy(v.data(), scales.data(), scales.size());
  constexpr std::uint32_t kLow4 = 0x0f0f0f0f, kLow2 = 0x03030303;
  std::array<std::uint32_t, 3> w = {(v[0] & kLow4) | ((v[2] & kLow4) << 4),
                                    (v[1] & kLow4) | ((v[3] & kLow4) << 4), 0};
  for (std::uint32_t n = 0; n < 4; ++n) w[2] |= ((v[n] >> 4) & kLow2) << (2 * n);
  std::memcpy(packed, w.data(), 12);
}

inline constexpr std::size_t kSixBitPlaneBytes = 192;

/// 256 values (sub-block * 16 + row) into 128 bytes of low nibbles (byte n of the first half holds
/// value n and, high, value n + 64; the second half the same from value 128) and 64 bytes of high
/// bits (byte n: values n, n + 64, n + 128, n + 192 from its lowest bits up).
inline void pack_six_bit_planes(const std::uint8_t* values, std::byte* planes) {
  constexpr std::uint64_t kLow4 = 0x0f0f0f0f0f0f0f0f, kLow2 = 0x0303030303030303;
  for (std::size_t n = 0; n < 64; n += 8) {
    std::array<std::uint64_t, 4> v{};
    for (std::size_t part = 0; part < 4; ++part) {
      std::memcpy(&v[part], values + 64 * part + n, 8);
    }
    const std::array<std::uint64_t, 3> packed = {
        (v[0] & kLow4) | ((v[1] & kLow4) << 4), (v[2] & kLow4) | ((v[3] & kLow4) << 4),
        ((v[0] >> 4) & kLow2) | (((v[1] >> 4) & kLow2) << 2) | (((v[2] >> 4) & kLow2) << 4) |
            (((v[3] >> 4) & kLow2) << 6)};
    for (std::size_t part = 0; part < 3; ++part) {
      std::memcpy(planes + 64 * part + n, &packed[part], 8);
    }
  }
}

/// One value of pack_six_bit_planes.
inline std::uint8_t six_bit_plane_value(const std::byte* planes, std::size_t index) {
  const std::size_t part = index / 64;
  const std::size_t n = index % 64;
  const auto low = std::to_integer<unsigned>(planes[64 * (part / 2) + n]) >> (4 * (part % 2));
  const auto high = std::to_integer<unsigned>(planes[128 + n]) >> (2 * part);
  return static_cast<std::uint8_t>((low & 15u) | ((high & 3u) << 4));
}

}  // namespace memdecay
