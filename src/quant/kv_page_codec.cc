#include "quant/kv_page_codec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "quant/half.h"

namespace memdecay {
namespace {

constexpr float kLargestHalf = 65504.0F;
/// The longest row: a channel of a page of 64 slots.
constexpr int kMostRow = 64;
/// Sums and extremes run in this many lanes, which the compiler turns into vectors.
constexpr int kLanes = 8;

std::size_t to_size(int n) {
  return static_cast<std::size_t>(n);
}

std::uint16_t load_half(const std::byte* at) {
  std::uint16_t half = 0;
  std::memcpy(&half, at, sizeof(half));
  return half;
}

void store_half(std::byte* at, std::uint16_t half) {
  std::memcpy(at, &half, sizeof(half));
}

/// half_to_float without branches, so that loops become vectors; right for finite halves, and
/// above 65504 for the others.
float finite_half_to_float(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7FFFU) << 13;
  const std::uint32_t sign = (half & 0x8000U) << 16;
  return std::bit_cast<float>(
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F) | sign);
}

/// The largest half <= value. REQUIRES: |value| <= 65504.
std::uint16_t half_below(float value) {
  const std::uint16_t half = float_to_half(value);
  if (half_to_float(half) <= value) return half;
  // Below a positive half comes the next lower number, below a negative one (-0 included: a value
  // that was rounded up to it) the next higher magnitude.
  return static_cast<std::uint16_t>((half & 0x8000U) != 0 ? half + 1 : half - 1);
}

/// The nearest half, but not below the value where halves are few (subnormal: their steps would be
/// a large part of the value). REQUIRES: 0 <= value <= 65504.
std::uint16_t half_for_scale(float value) {
  const std::uint16_t half = float_to_half(value);
  const bool up = half < 0x0400U && half_to_float(half) < value;
  return static_cast<std::uint16_t>(up ? half + 1 : half);
}

/// One row of numbers that share a scale: its codes, its pair, and what rounding cost.
struct EncodedRow {
  std::array<std::uint8_t, kMostRow> codes{};
  std::uint16_t scale = 0;
  std::uint16_t minimum = 0;
  float error = 0;
  float power = 0;
};

/// REQUIRES: 1 <= n <= kMostRow.
EncodedRow encode_row(const float* x, int n, int bits) {
  // Repeating the last number to whole lanes changes no extreme; its share of the sums is 0.
  std::array<float, kMostRow> row;
  const int padded = (n + kLanes - 1) / kLanes * kLanes;
  std::copy_n(x, n, row.begin());
  std::fill(row.begin() + n, row.begin() + padded, x[n - 1]);
  std::array<float, kLanes> low, high;
  std::copy_n(row.begin(), kLanes, low.begin());
  high = low;
  for (int i = kLanes; i < padded; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const float value = row[to_size(i + j)];
      low[to_size(j)] = value < low[to_size(j)] ? value : low[to_size(j)];
      high[to_size(j)] = value > high[to_size(j)] ? value : high[to_size(j)];
    }
  }
  const float lowest = *std::min_element(low.begin(), low.end());
  const float highest = *std::max_element(high.begin(), high.end());

  EncodedRow encoded;
  const float levels = static_cast<float>((1 << bits) - 1);
  encoded.minimum = half_below(lowest);
  const float minimum = half_to_float(encoded.minimum);
  encoded.scale = half_for_scale((highest - minimum) / levels);
  const float scale = half_to_float(encoded.scale);
  const float divisor = encoded.scale == 0 ? 1.0F : scale;
  std::array<float, kLanes> error{}, power{};
  for (int i = 0; i < padded; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const std::size_t at = to_size(i + j);
      // Adding 2^23 rounds to a whole number, ties to even, and leaves it in the low bits.
      constexpr float kMagic = 0x1p23F;
      const float wanted = (row[at] - minimum) / divisor;
      const float sum = (wanted < levels ? wanted : levels) + kMagic;
      encoded.codes[at] = static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(sum));
      const float difference = row[at] - ((sum - kMagic) * scale + minimum);
      const float used = i + j < n ? 1.0F : 0.0F;
      error[to_size(j)] += used * difference * difference;
      power[to_size(j)] += used * row[at] * row[at];
    }
  }
  std::fill(encoded.codes.begin() + n, encoded.codes.begin() + padded, std::uint8_t{0});
  for (int j = 0; j < kLanes; ++j) {
    encoded.error += error[to_size(j)];
    encoded.power += power[to_size(j)];
  }
  return encoded;
}

/// The codes of one depth of a matrix: a channel of K, a slot of V. They stand 4 bytes apart.
template <typename Byte>
struct CodeRow {
  Byte* first;
  int shift;
  int mask;

  int code(int column) const { return (std::to_integer<int>(first[4 * column]) >> shift) & mask; }
  /// REQUIRES: zeros there.
  void set(int column, std::uint8_t code) const {
    first[4 * column] |= static_cast<std::byte>(code << shift);
  }
};

/// A matrix of codes, K or V of a head, and the scales and minima that follow it.
template <typename Byte>
class CodeMatrix {
 public:
  CodeMatrix(Byte* codes, std::size_t code_bytes, int bits, int columns)
      : codes_(codes), scales_(codes + code_bytes), bits_(bits), columns_(columns) {}

  CodeRow<Byte> row(int depth) const {
    const CodePlace place = code_place(bits_, depth, 0, columns_);
    return {codes_ + place.byte, place.shift, (1 << bits_) - 1};
  }
  /// Scale i of block `block`. A block is `count` scales, then as many minima.
  Byte* scale(int block, int count, int i) const {
    return scales_ + 2 * to_size(2 * block * count + i);
  }
  int bits() const { return bits_; }

 private:
  Byte* codes_;
  Byte* scales_;
  int bits_;
  int columns_;
};

template <typename Byte>
CodeMatrix<Byte> keys_of(const KvPageLayout& layout, Byte* head) {
  return {head, layout.key_code_bytes(), key_bits(layout.format), layout.page_tokens};
}

template <typename Byte>
CodeMatrix<Byte> values_of(const KvPageLayout& layout, Byte* head) {
  return {head + layout.key_bytes(), layout.value_code_bytes(), value_bits(layout.format),
          layout.head_dim};
}

void store_row(const EncodedRow& encoded, int n, const CodeRow<std::byte>& row, int first,
               std::byte* scale, int scale_count) {
  for (int i = 0; i < n; ++i) row.set(first + i, encoded.codes[to_size(i)]);
  store_half(scale, encoded.scale);
  store_half(scale + 2 * scale_count, encoded.minimum);
}

KvHeadError encode_codes(const KvPageLayout& layout, const float* keys, const float* values,
                         int filled, std::byte* head) {
  const int head_dim = layout.head_dim, slots = layout.page_tokens;
  const CodeMatrix<std::byte> k = keys_of(layout, head), v = values_of(layout, head);
  KvHeadError sum;
  std::memset(head, 0, layout.head_bytes());
  if (filled == 0) return sum;
  for (int d = 0; d < head_dim; ++d) {
    const EncodedRow encoded = encode_row(keys + d * slots, filled, k.bits());
    store_row(encoded, filled, k.row(d), 0, k.scale(0, head_dim, d), head_dim);
    sum.keys_error += static_cast<double>(encoded.error);
    sum.keys_power += static_cast<double>(encoded.power);
  }
  for (int slot = 0; slot < filled; ++slot) {
    for (int first = 0; first < head_dim; first += kValueScaleRun) {
      const int n = std::min(kValueScaleRun, head_dim - first);
      const EncodedRow encoded = encode_row(values + slot * head_dim + first, n, v.bits());
      store_row(encoded, n, v.row(slot), first, v.scale(first / kValueScaleRun, slots, slot),
                slots);
      sum.values_error += static_cast<double>(encoded.error);
      sum.values_power += static_cast<double>(encoded.power);
    }
  }
  return sum;
}

/// The numbers of columns [first, first + n). The product is exact in fp32: 8 bits times 11.
void load_row(const CodeRow<const std::byte>& row, int first, int n, const std::byte* scale,
              int scale_count, float* to) {
  const float step = half_to_float(load_half(scale));
  const float minimum = half_to_float(load_half(scale + 2 * scale_count));
  for (int i = 0; i < n; ++i) to[i] = static_cast<float>(row.code(first + i)) * step + minimum;
}

void decode_codes(const KvPageLayout& layout, const std::byte* head, int filled, float* keys,
                  float* values) {
  const int head_dim = layout.head_dim, slots = layout.page_tokens;
  const CodeMatrix<const std::byte> k = keys_of(layout, head), v = values_of(layout, head);
  for (int d = 0; d < head_dim; ++d) {
    load_row(k.row(d), 0, filled, k.scale(0, head_dim, d), head_dim, keys + d * slots);
  }
  for (int slot = 0; slot < filled; ++slot) {
    for (int first = 0; first < head_dim; first += kValueScaleRun) {
      load_row(v.row(slot), first, std::min(kValueScaleRun, head_dim - first),
               v.scale(first / kValueScaleRun, slots, slot), slots,
               values + slot * head_dim + first);
    }
  }
}

/// n consecutive elements of fp16 or fp32.
void load_floats(KvFormat format, const std::byte* at, int n, float* to) {
  if (format == KvFormat::kF32) {
    std::memcpy(to, at, to_size(n) * sizeof(float));
    return;
  }
  for (int i = 0; i < n; ++i) to[i] = finite_half_to_float(load_half(at + 2 * i));
}

/// Writes n elements and adds up what rounding cost.
void store_floats(KvFormat format, const float* x, int n, std::byte* at, double& error,
                  double& power) {
  for (int i = 0; i < n; ++i) power += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  if (format == KvFormat::kF32) {
    std::memcpy(at, x, to_size(n) * sizeof(float));
    return;
  }
  for (int i = 0; i < n; ++i) {
    const std::uint16_t half = float_to_half(std::clamp(x[i], -kLargestHalf, kLargestHalf));
    store_half(at + 2 * i, half);
    error += std::pow(static_cast<double>(x[i] - half_to_float(half)), 2);
  }
}

bool fits_half(const float* x, std::size_t n) {
  // A comparison with a NaN is false.
  bool fits = true;
  for (std::size_t i = 0; i < n; ++i) fits &= std::fabs(x[i]) <= kLargestHalf;
  return fits;
}

double relative(double error, double power) {
  return power > 0 ? error / power : 0;
}

}  // namespace

void decode_kv_head(const KvPageLayout& layout, const std::byte* head, int filled, float* keys,
                    float* values) {
  const std::size_t n = to_size(layout.head_dim) * to_size(layout.page_tokens);
  std::fill_n(keys, n, 0.0F);
  std::fill_n(values, n, 0.0F);
  if (is_quantized(layout.format)) {
    decode_codes(layout, head, filled, keys, values);
    return;
  }
  const std::size_t element = kv_element_bytes(layout.format);
  for (int d = 0; d < layout.head_dim; ++d) {
    const int row = d * layout.page_tokens;
    load_floats(layout.format, head + to_size(row) * element, filled, keys + row);
  }
  load_floats(layout.format, head + layout.key_bytes(), filled * layout.head_dim, values);
}

KvHeadError encode_kv_head(const KvPageLayout& layout, const float* keys, const float* values,
                           int filled, std::byte* head) {
  if (is_quantized(layout.format)) return encode_codes(layout, keys, values, filled, head);
  std::memset(head, 0, layout.head_bytes());
  const std::size_t element = kv_element_bytes(layout.format);
  KvHeadError sum;
  for (int d = 0; d < layout.head_dim; ++d) {
    const int row = d * layout.page_tokens;
    store_floats(layout.format, keys + row, filled, head + to_size(row) * element, sum.keys_error,
                 sum.keys_power);
  }
  store_floats(layout.format, values, filled * layout.head_dim, head + layout.key_bytes(),
               sum.values_error, sum.values_power);
  return sum;
}

std::optional<float> convert_kv_page(const KvPageLayout& from, const std::byte* source,
                                     const KvPageLayout& to, std::byte* target, int filled) {
  MEMDECAY_CHECK(from.in(to.format) == to);
  MEMDECAY_CHECK(filled >= 0 && filled <= from.page_tokens);
  const std::size_t n = to_size(from.head_dim) * to_size(from.page_tokens);
  std::vector<float> head(2 * n);
  double sum = 0;
  for (int layer = 0; layer < from.layers; ++layer) {
    for (int number = 0; number < from.kv_heads; ++number) {
      decode_kv_head(from, source + from.head_offset(layer, number), filled, head.data(),
                     head.data() + n);
      // What was quantized is finite by construction.
      if (!is_quantized(from.format) && !fits_half(head.data(), head.size())) return std::nullopt;
      const KvHeadError error = encode_kv_head(to, head.data(), head.data() + n, filled,
                                               target + to.head_offset(layer, number));
      sum += relative(error.keys_error, error.keys_power) +
             relative(error.values_error, error.values_power);
    }
  }
  return static_cast<float>(std::sqrt(sum / (2.0 * from.layers * from.kv_heads)));
}

}  // namespace memdecay
