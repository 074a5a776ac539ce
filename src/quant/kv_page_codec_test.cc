#include "quant/kv_page_codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "quant/half.h"

namespace memdecay {
namespace {

constexpr KvFormat kForms[] = {KvFormat::kF16, KvFormat::kF32, KvFormat::kInt8, KvFormat::kK8V4,
                               KvFormat::kInt4};

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

std::uint16_t half_at(const std::vector<std::byte>& bytes, std::size_t offset) {
  std::uint16_t half = 0;
  std::memcpy(&half, bytes.data() + offset, 2);
  return half;
}

std::vector<std::byte> encode(const KvPageLayout& layout, const std::vector<float>& keys,
                              const std::vector<float>& values, int filled,
                              KvHeadError* error = nullptr) {
  std::vector<std::byte> head(layout.head_bytes(), std::byte{0xAA});
  const KvHeadError got = encode_kv_head(layout, keys.data(), values.data(), filled, head.data());
  if (error != nullptr) *error = got;
  return head;
}

struct Head {
  std::vector<float> keys, values;
};

Head decode(const KvPageLayout& layout, const std::vector<std::byte>& head, int filled) {
  const std::size_t n = size(layout.head_dim * layout.page_tokens);
  Head out{std::vector<float>(n, NAN), std::vector<float>(n, NAN)};
  decode_kv_head(layout, head.data(), filled, out.keys.data(), out.values.data());
  return out;
}

/// fp16 numbers, as pages hold them.
std::vector<float> random_halves(std::size_t n, float amplitude, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, amplitude);
  std::vector<float> values(n);
  for (float& value : values) value = half_to_float(float_to_half(normal(random)));
  return values;
}

TEST(KvPageCodec, Int8CodesByHand) {
  // One channel: minimum -1, maximum 126.5, so scale 127.5 / 255 = 0.5.
  const KvPageLayout layout{1, 1, 1, 16, KvFormat::kInt8};
  std::vector<float> keys(16, 0.0F), values(16, 3.0F);
  keys[0] = -1.0F;
  keys[1] = 126.5F;
  keys[2] = 0.1F;   // 2.2 steps above the minimum
  keys[3] = 0.25F;  // 2.5 steps: to the even 2
  keys[4] = 0.75F;  // 3.5 steps: to the even 4
  KvHeadError error;
  const auto head = encode(layout, keys, values, 5, &error);
  const int want[] = {0, 255, 2, 2, 4};
  // One channel: the first byte of each word.
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(std::to_integer<int>(head[size(i)]), i % 4 == 0 && i < 20 ? want[i / 4] : 0) << i;
  }
  EXPECT_EQ(half_at(head, 64), float_to_half(0.5F));
  EXPECT_EQ(half_at(head, 66), float_to_half(-1.0F));
  const Head out = decode(layout, head, 5);
  EXPECT_EQ(std::vector<float>(out.keys.begin(), out.keys.begin() + 6),
            (std::vector<float>{-1.0F, 126.5F, 0.0F, 0.0F, 1.0F, 0.0F}));
  EXPECT_NEAR(error.keys_error, 0.01 + 0.0625 + 0.0625, 1e-6);
  EXPECT_NEAR(error.keys_power, 1 + 126.5 * 126.5 + 0.01 + 0.0625 + 0.5625, 1e-2);
  // V: runs of one number are exact, with scale 0.
  EXPECT_EQ(error.values_error, 0);
  EXPECT_EQ(half_at(head, layout.key_bytes() + 16), 0);
  EXPECT_EQ(half_at(head, layout.key_bytes() + 16 + 2 * 16), float_to_half(3.0F));
  EXPECT_EQ(out.values[4], 3.0F);
  EXPECT_EQ(out.values[5], 0.0F);
}

TEST(KvPageCodec, WordsHoldNeighboursOfOneColumn) {
  // K of 8 channels and V of 8 slots, every code known: channel d of K is d at slot 0, V likewise.
  const KvPageLayout layout{1, 1, 34, 16, KvFormat::kInt4};
  std::vector<float> keys(size(34 * 16)), values(size(34 * 16));
  for (int d = 0; d < 34; ++d) {
    keys[size(d * 16)] = static_cast<float>(d % 8);
    keys[size(d * 16 + 1)] = 15.0F;
  }
  for (int slot = 0; slot < 16; ++slot) {
    values[size(slot * 34)] = static_cast<float>(slot % 8);
    values[size(slot * 34 + 1)] = 15.0F;
    values[size(slot * 34 + 33)] = -30.0F;
  }
  const auto head = encode(layout, keys, values, 16);
  const auto word = [&](std::size_t at) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, head.data() + at, 4);
    return bits;
  };
  // Elements 0, 2, 4, 6 in the low half, 1, 3, 5, 7 in the high one.
  EXPECT_EQ(word(0), 0x75316420U);
  EXPECT_EQ(word(4), 0xFFFFFFFFU);
  EXPECT_EQ(word(8), 0U);
  EXPECT_EQ(word(size(4 * 16 * 4)), 0x00010000U) << "channels 32 and 33 alone";
  EXPECT_EQ(layout.key_code_bytes(), size(5 * 16 * 4));
  EXPECT_EQ(half_at(head, layout.key_code_bytes()), float_to_half(1.0F));
  const std::size_t v = layout.key_bytes();
  EXPECT_EQ(word(v), 0x75316420U);
  EXPECT_EQ(word(v + 4), 0xFFFFFFFFU);
  EXPECT_EQ(word(v + size(34 * 4)), 0x75316420U) << "slots 8 to 15";
  // Two runs: 16 scales and 16 minima each.
  const std::size_t pairs = v + layout.value_code_bytes();
  EXPECT_EQ(half_at(head, pairs + 2 * 3), float_to_half(1.0F));
  EXPECT_EQ(half_at(head, pairs + 2 * 16 + 2 * 3), 0);
  EXPECT_EQ(half_at(head, pairs + 4 * 16 + 2 * 3), float_to_half(2.0F));
  EXPECT_EQ(half_at(head, pairs + 6 * 16 + 2 * 3), float_to_half(-30.0F));
  const Head out = decode(layout, head, 16);
  EXPECT_EQ(out.values, values);
  EXPECT_EQ(out.keys, keys);
}

TEST(KvPageCodec, BytesTooLieInPairs) {
  const KvPageLayout layout{1, 1, 4, 16, KvFormat::kInt8};
  std::vector<float> keys(size(4 * 16)), values(size(4 * 16));
  for (int d = 0; d < 4; ++d) {
    keys[size(d * 16)] = static_cast<float>(d + 1);
    keys[size(d * 16 + 1)] = 255.0F;
  }
  const auto head = encode(layout, keys, values, 16);
  const int want[] = {1, 3, 2, 4};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(std::to_integer<int>(head[size(i)]), want[i]);
}

TEST(KvPageCodec, PlacesOfCodesAreEachTakenOnce) {
  for (const int bits : {4, 8}) {
    for (const int depth : {8, 16, 32, 80, 256}) {
      constexpr int kColumns = 24;
      std::vector<int> taken(size(depth * kColumns));
      for (int i = 0; i < depth * kColumns; ++i) {
        const CodePlace place = code_place(bits, i / kColumns, i % kColumns, kColumns);
        const std::size_t code = place.byte * size(8 / bits) + size(place.shift / bits);
        ASSERT_LT(code, taken.size());
        ++taken[code];
      }
      EXPECT_EQ(taken, std::vector<int>(taken.size(), 1)) << bits << " " << depth;
    }
  }
}

/// |x - x'| <= scale / 2 in every row, for fp16 and for fp32 numbers.
void expect_bounded(const KvPageLayout& layout, const Head& in, int filled) {
  const auto head = encode(layout, in.keys, in.values, filled);
  const Head out = decode(layout, head, filled);
  for (int d = 0; d < layout.head_dim; ++d) {
    const float scale = half_to_float(half_at(head, layout.key_code_bytes() + 2 * size(d)));
    for (int slot = 0; slot < layout.page_tokens; ++slot) {
      const std::size_t k = size(d * layout.page_tokens + slot);
      const std::size_t v = size(slot * layout.head_dim + d);
      if (slot >= filled) {
        ASSERT_EQ(out.keys[k], 0.0F);
        ASSERT_EQ(out.values[v], 0.0F);
        continue;
      }
      const std::size_t at = size(d / kValueScaleRun * 2 * layout.page_tokens + slot);
      const float value_scale =
          half_to_float(half_at(head, layout.key_bytes() + layout.value_code_bytes() + 2 * at));
      ASSERT_LE(std::fabs(out.keys[k] - in.keys[k]), 0.5F * scale + 3e-7F * std::fabs(in.keys[k]));
      ASSERT_LE(std::fabs(out.values[v] - in.values[v]),
                0.5F * value_scale + 3e-7F * std::fabs(in.values[v]));
    }
  }
}

TEST(KvPageCodec, ErrorIsAtMostHalfAStep) {
  unsigned seed = 0;
  for (const int head_dim : {64, 80, 96, 128, 256, 2, 3, 34}) {
    for (const int page_tokens : {16, 32, 64}) {
      for (const KvFormat format : {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4}) {
        for (const int filled : {1, 2, 7, page_tokens - 1, page_tokens}) {
          const KvPageLayout layout{1, 1, head_dim, page_tokens, format};
          const std::size_t n = size(head_dim * page_tokens);
          ++seed;
          expect_bounded(layout, {random_halves(n, 1, seed), random_halves(n, 1e-6F, seed)},
                         filled);
          // fp32 numbers far from 0: fp16 cannot hold their minimum, so it goes below.
          Head floats{random_halves(n, 0.01F, seed), random_halves(n, 100, seed)};
          for (float& x : floats.keys) x = x * 1.0001F + 1000.0F;
          for (float& x : floats.values) x = x * 1.0001F - 3.0F;
          expect_bounded(layout, floats, filled);
        }
      }
    }
  }
}

TEST(KvPageCodec, ExtremesStayFinite) {
  const KvPageLayout layout{1, 1, 64, 32, KvFormat::kInt4};
  Head in{std::vector<float>(64 * 32, -65504.0F), std::vector<float>(64 * 32, 0.0F)};
  for (std::size_t i = 0; i < in.keys.size(); i += 3) in.keys[i] = 65504.0F;
  in.values[5] = 0x1p-24F;
  in.values[6] = -0x1p-24F;
  in.values[7] = -0.0F;
  expect_bounded(layout, in, 32);
  const Head out = decode(layout, encode(layout, in.keys, in.values, 32), 32);
  for (const float x : out.keys) ASSERT_TRUE(std::isfinite(x));
  EXPECT_EQ(out.values[6], -0x1p-24F);
}

TEST(KvPageCodec, EncodingTwiceInOneFormChangesNothing) {
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4}) {
    const KvPageLayout layout{1, 1, 64, 32, format};
    const std::size_t n = size(64 * 32);
    const auto once = encode(layout, random_halves(n, 2, 1), random_halves(n, 3, 2), 32);
    const Head decoded = decode(layout, once, 32);
    EXPECT_EQ(once, encode(layout, decoded.keys, decoded.values, 32));
  }
}

TEST(KvPageCodec, TheMinimumSurvivesEveryEncoding) {
  const std::size_t n = size(64 * 32);
  const KvPageLayout int8{1, 1, 64, 32, KvFormat::kInt8};
  const Head in{random_halves(n, 2, 1), random_halves(n, 3, 2)};
  const auto first = encode(int8, in.keys, in.values, 32);
  const Head decoded = decode(int8, first, 32);
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4}) {
    const KvPageLayout to = int8.in(format);
    const auto again = encode(to, decoded.keys, decoded.values, 32);
    for (std::size_t d = 0; d < 64; ++d) {
      ASSERT_EQ(half_at(again, to.key_code_bytes() + 2 * (64 + d)),
                half_at(first, int8.key_code_bytes() + 2 * (64 + d)));
    }
  }
}

/// A page of two layers of three heads, in fp16, all slots random.
std::vector<std::byte> random_page(const KvPageLayout& layout, unsigned seed) {
  std::vector<std::byte> page(layout.page_bytes());
  const std::vector<float> numbers = random_halves(page.size() / 2, 1, seed);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint16_t half = float_to_half(numbers[i]);
    std::memcpy(page.data() + 2 * i, &half, 2);
  }
  return page;
}

TEST(KvPageCodec, EveryFormConvertsToEveryOther) {
  const KvPageLayout half{2, 3, 80, 32, KvFormat::kF16};
  for (const int filled : {0, 1, 13, 32}) {
    const std::vector<std::byte> origin = random_page(half, 7);
    for (const KvFormat from : kForms) {
      std::vector<std::byte> source(half.in(from).page_bytes(), std::byte{0x77});
      ASSERT_TRUE(convert_kv_page(half, origin.data(), half.in(from), source.data(), filled));
      for (const KvFormat to : kForms) {
        std::vector<std::byte> a(half.in(to).page_bytes(), std::byte{0x11}), b = a;
        std::memset(b.data(), 0x22, b.size());
        const auto error =
            convert_kv_page(half.in(from), source.data(), half.in(to), a.data(), filled);
        convert_kv_page(half.in(from), source.data(), half.in(to), b.data(), filled);
        EXPECT_EQ(a, b) << "unfilled slots must not depend on what was there";
        ASSERT_TRUE(error);
        const float limit = to == KvFormat::kF32    ? 0.0F
                            : to == KvFormat::kF16  ? 4e-4F
                            : to == KvFormat::kInt8 ? 0.01F
                                                    : 0.15F;
        EXPECT_LE(*error, limit);
        if (filled == 0) {
          EXPECT_EQ(*error, 0.0F);
        }
      }
    }
  }
}

TEST(KvPageCodec, HalvesAndFloatsRoundTrip) {
  const KvPageLayout half{2, 3, 64, 32, KvFormat::kF16};
  const std::vector<std::byte> page = random_page(half, 8);
  std::vector<std::byte> floats(half.in(KvFormat::kF32).page_bytes()), back(page.size());
  EXPECT_EQ(convert_kv_page(half, page.data(), half.in(KvFormat::kF32), floats.data(), 32), 0.0F);
  EXPECT_EQ(convert_kv_page(half.in(KvFormat::kF32), floats.data(), half, back.data(), 32), 0.0F);
  EXPECT_EQ(page, back);
}

TEST(KvPageCodec, TheErrorIsRelativeAndCountsKAndVAlike) {
  const KvPageLayout half{1, 1, 64, 32, KvFormat::kF16};
  const std::vector<std::byte> page = random_page(half, 9);
  const auto error_of = [&](KvFormat format) {
    std::vector<std::byte> target(half.in(format).page_bytes());
    return *convert_kv_page(half, page.data(), half.in(format), target.data(), 32);
  };
  const float int8 = error_of(KvFormat::kInt8);
  const float k8v4 = error_of(KvFormat::kK8V4);
  const float int4 = error_of(KvFormat::kInt4);
  // Steps of 4 bits are 17 times as wide as those of 8.
  EXPECT_NEAR(int4 / int8, 17, 1);
  EXPECT_NEAR(k8v4 / int4, std::sqrt(0.5), 0.02);
  // Keys a thousand times as loud change nothing: errors are relative part by part.
  std::vector<std::byte> loud = page;
  for (std::size_t i = 0; i < half.key_bytes(); i += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, loud.data() + i, 2);
    bits = float_to_half(half_to_float(bits) * 1024);
    std::memcpy(loud.data() + i, &bits, 2);
  }
  std::vector<std::byte> target(half.in(KvFormat::kInt4).page_bytes());
  EXPECT_NEAR(
      *convert_kv_page(half, loud.data(), half.in(KvFormat::kInt4), target.data(), 32) / int4, 1,
      0.01);
}

TEST(KvPageCodec, WhatFp16CannotHoldIsRefused) {
  const KvPageLayout half{1, 1, 64, 32, KvFormat::kF16};
  constexpr std::uint16_t kBad[] = {0x7C00, 0xFC00, 0x7E00, 0x7C01};
  for (const std::uint16_t bad : kBad) {
    std::vector<std::byte> page = random_page(half, 10);
    std::memcpy(page.data() + 2 * (5 * 32 + 9), &bad, 2);  // K of slot 9
    std::vector<std::byte> target(half.in(KvFormat::kInt8).page_bytes());
    const KvPageLayout to = half.in(KvFormat::kInt8);
    EXPECT_FALSE(convert_kv_page(half, page.data(), to, target.data(), 32));
    EXPECT_FALSE(convert_kv_page(half, page.data(), to, target.data(), 10));
    EXPECT_TRUE(convert_kv_page(half, page.data(), to, target.data(), 9)) << "not filled";
  }
  const KvPageLayout floats = half.in(KvFormat::kF32);
  std::vector<std::byte> page(floats.page_bytes()), target(half.page_bytes());
  for (const float bad : {70000.0F, -INFINITY, NAN}) {
    std::memcpy(page.data() + floats.key_bytes(), &bad, 4);
    EXPECT_FALSE(convert_kv_page(floats, page.data(), half, target.data(), 1));
  }
}

}  // namespace
}  // namespace memdecay
