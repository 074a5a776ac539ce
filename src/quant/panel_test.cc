#include "quant/panel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "quant/weight_type.h"

namespace memdecay {
namespace {

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator() & 255);
  return bytes;
}

/// A matrix repacked, with the bytes around each panel watched.
struct Repacked {
  std::vector<std::byte> panels;
  PanelMatrix matrix;

  Repacked(WeightType type, int rows, int k, const std::vector<std::byte>& source) {
    const std::size_t bytes = panel_bytes(type, k);
    matrix = {type, rows, k, nullptr, bytes};
    panels.assign(static_cast<std::size_t>(matrix.panel_count()) * bytes, std::byte{0xa5});
    for (int panel = 0; panel < matrix.panel_count(); ++panel) {
      repack_panel(type, rows, k, source, panel,
                   std::span(panels).subspan(static_cast<std::size_t>(panel) * bytes, bytes));
    }
    matrix.panels = panels.data();
  }
};

void expect_same_bits(WeightType type, int rows, int k, const std::vector<std::byte>& source) {
  const Repacked repacked(type, rows, k, source);
  std::vector<float> expected(static_cast<std::size_t>(k)), actual(static_cast<std::size_t>(k));
  const std::size_t row_bytes = weight_row_bytes(type, k);
  for (int row = 0; row < rows; ++row) {
    dequantize_weights(
        type, std::span(source).subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes),
        expected);
    unpack_row(repacked.matrix, row, actual);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(actual[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << weight_type_traits(type).name << " rows " << rows << " k " << k << " row " << row
          << " input " << i;
    }
  }
}

TEST(Panel, UnpackedRowsAreTheSourceBitForBit) {
  for (const WeightTypeTraits& traits : weight_types()) {
    for (const int k : {1, 7, 32, 64, 96, 256, 512, 576}) {
      if (k % traits.block_values != 0) continue;
      for (const int rows : {1, 15, 16, 17, 40}) {
        const std::size_t bytes = static_cast<std::size_t>(rows) * weight_row_bytes(traits.type, k);
        expect_same_bits(traits.type, rows, k, random_bytes(bytes, static_cast<unsigned>(k)));
        expect_same_bits(traits.type, rows, k, std::vector<std::byte>(bytes, std::byte{0x00}));
        // 0xff would make every fp16 scale a NaN.
        expect_same_bits(traits.type, rows, k, std::vector<std::byte>(bytes, std::byte{0x7b}));
      }
    }
  }
}

TEST(Panel, SizesAreThoseOfTheSourceWherePossible) {
  for (const WeightTypeTraits& traits : weight_types()) {
    const std::size_t source = 16 * weight_row_bytes(traits.type, 512);
    EXPECT_EQ(panel_bytes(traits.type, 512), source) << traits.name;
    EXPECT_EQ(panel_bytes(traits.type, traits.block_values) % 64, 0u) << traits.name;
  }
}

TEST(Panel, AbsentRowsAndTheOddHalfChunkAreZero) {
  const int k = 32;
  const std::vector<std::byte> source = random_bytes(weight_row_bytes(WeightType::kQ8_0, k), 3);
  const Repacked repacked(WeightType::kQ8_0, 1, k, source);
  std::size_t nonzero = 0;
  for (std::size_t i = 0; i < repacked.panels.size(); ++i) {
    nonzero += repacked.panels[i] != std::byte{0} ? 1U : 0U;
    const bool code_of_row_0 = i < 512 && i % 64 < 4;
    const bool scale_of_row_0 = i == 1024 || i == 1025;
    if (!code_of_row_0 && !scale_of_row_0) {
      ASSERT_EQ(repacked.panels[i], std::byte{0}) << i;
    }
  }
  EXPECT_GT(nonzero, 20u);
}

}  // namespace
}  // namespace memdecay
