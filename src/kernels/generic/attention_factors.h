// What a quantized page's codes are multiplied with: 16-bit factors of queries and of weights.
//
// K: a channel's scale goes into the query. With Q = max |q| of the row and S = the largest scale
// of the page,
//     score = sum of code * round(q / Q * scale / S * 32767)  * (Q * S / 32767) + sum of q *
//     minimum.
// V: a slot's scale goes into its weight. With P = the largest weight of the row in the tile, S =
// the largest scale among the page's filled slots in this run of 32 dimensions,
//     out += sum of code * round(weight / P * scale / S * 32767)  * (P * S / 32767),
// and weight * minimum is added for all pages of the tile before the first of them. Sums with
// minima stay in fp32, in 16 lanes and then a fixed tree. So a result depends on the row, the
// page and the slots that the row sees alone, as it does for fp16; a factor's error is at most
// 2^-16 of the largest.
// Included inside a target region.
#pragma once

#include "kernels/generic/attention_codes.h"
#include "kernels/generic/attention_products.h"
#include "kernels/generic/softmax_tile.h"

namespace memdecay {
namespace {

inline constexpr float kMostFactor = 32767.0f;
/// Queries, scales and weights whose largest is below this count as 0: their reciprocal could
/// overflow, and their products are lost in any sum.
inline constexpr float kLeastFactor = 1e-30f;
inline constexpr int kMostRuns = kMaxFastHeadDim / kValueScaleRun;

/// The quantized pages of one tile, and the factors of one block of query rows.
template <typename L>
class CodedTile {
 public:
  /// Rows that a block may have, rounded up to whole vectors.
  static constexpr int kRows = 16;

  CodedTile() = default;
  /// Takes its arrays with `floats(count)`, which returns 64-byte aligned room.
  template <typename Floats>
  CodedTile(const Floats& floats, const KvPageLayout& layout)
      : head_dim_(layout.head_dim),
        depth_((head_dim_ + 31) / 32 * 32),
        runs_(layout.value_runs()),
        page_slots_(layout.page_tokens) {
    const int pages = kAttentionTileSlots / page_slots_;
    const auto take = [&](int count) { return floats(static_cast<std::size_t>(count)); };
    key_scales_ = take(pages * depth_);
    key_minima_ = take(pages * depth_);
    value_scales_ = take(runs_ * kAttentionTileSlots);
    value_minima_ = take(runs_ * kAttentionTileSlots);
    value_most_ = take(pages * runs_);
    value_steps_ = take(pages * runs_ * kRows);
    key_steps_ = take(pages * kRows);
    key_bases_ = take(pages * kRows);
    added_minima_ = take(kRows * runs_);
    key_factors_ = reinterpret_cast<std::int16_t*>(take(pages * kRows * depth_ / 2));
    value_factors_ = reinterpret_cast<std::int16_t*>(take(runs_ * kRows * kAttentionTileSlots / 2));
    partial_ = take(8 * 16);
  }

  // ---- keys

  void read_keys(int page, const std::byte* scales) {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(scales);
    float* to = key_scales_ + page * depth_;
    float* minima = key_minima_ + page * depth_;
    key_most_[page] = read_scales(halves, head_dim_, to);
    for (int d = 0; d < head_dim_; d += L::kWidth) {
      L::store(minima + d, L::load_half(halves + head_dim_ + d));
    }
    divide(to, head_dim_, key_most_[page]);
    std::fill(to + head_dim_, to + depth_, 0.0f);
  }

  /// `units` are the rows of q over their largest number, times kMostFactor; both [rows][stride].
  void make_key_factors(int pages, const bool* coded, int rows, const float* q, const float* units,
                        const float* largest, std::ptrdiff_t stride, LineQueue& lines) {
    SumQueue sums(partial_, key_bases_);
    const int head_dim = head_dim_, depth = depth_;
    for (int p = 0; p < pages; ++p) {
      if (!coded[p]) continue;
      const float* scales = key_scales_ + p * depth;
      const float* minima = key_minima_ + p * depth;
      const float step = key_most_[p] / kMostFactor;
      float* steps = key_steps_ + p * kRows;
      std::int16_t* to = key_factors_ + p * kRows * depth;
      first_base_[p] = sums.place();
      lines.step(rows);
      for (int r = 0; r < rows; ++r, to += depth) {
        steps[r] = largest[r] * step;
        const float* unit = units + r * stride;
        MEMDECAY_ROLLED
        for (int d = 0; d < depth; d += 2 * L::kWidth) {
          L::store_factors(to + d, L::mul(L::load(unit + d), L::load(scales + d)),
                           L::mul(L::load(unit + d + L::kWidth), L::load(scales + d + L::kWidth)));
        }
        sums.add_product(q + r * stride, minima, head_dim);
      }
    }
    sums.flush();
  }

  const std::int16_t* key_factors(int page) const { return key_factors_ + page * kRows * depth_; }
  std::ptrdiff_t key_factor_stride() const { return depth_; }
  const float* key_steps(int page) const { return key_steps_ + page * kRows; }
  const float* key_bases(int page) const { return key_bases_ + first_base_[page]; }

  // ---- values

  /// Slots past the filled ones may hold anything finite.
  void read_values(int page, const std::byte* scales, int filled) {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(scales);
    for (int run = 0; run < runs_; ++run, halves += 2 * page_slots_) {
      float* to = value_scales_ + run * kAttentionTileSlots + page * page_slots_;
      float* minima = value_minima_ + run * kAttentionTileSlots + page * page_slots_;
      for (int s = 0; s < page_slots_; s += L::kWidth) {
        L::store(to + s, L::keep_range(L::load_half(halves + s), 0, filled - s, L::zero()));
        L::store(minima + s, L::load_half(halves + page_slots_ + s));
      }
      const float most = most_of(to, page_slots_);
      divide(to, page_slots_, most);
      value_most_[page * runs_ + run] = most;
    }
  }

  /// A page in some other form adds nothing here.
  void clear_values(int page) {
    for (int run = 0; run < runs_; ++run) {
      const int at = run * kAttentionTileSlots + page * page_slots_;
      std::fill_n(value_scales_ + at, page_slots_, 0.0f);
      std::fill_n(value_minima_ + at, page_slots_, 0.0f);
      value_most_[page * runs_ + run] = 0.0f;
    }
  }

  /// From the weights [rows][kAttentionTileSlots] of the tile; `peak` is the largest of each row.
  void make_value_factors(int pages, int rows, const float* weights, const float* peak,
                          LineQueue& lines) {
    alignas(64) float unit[kRows], step[kRows];
    for (int r = 0; r < kRows; r += L::kWidth) {
      const typename L::Floats most = L::load(peak + r);
      const typename L::Floats limit = L::set(kMostFactor);
      L::store(unit + r, L::zero_unless_above(L::div(limit, most), most, kLeastFactor));
      L::store(step + r, L::zero_unless_above(L::div(most, limit), most, kLeastFactor));
    }
    for (int i = 0; i < pages * runs_; ++i) {
      const typename L::Floats most = L::set(value_most_[i]);
      for (int r = 0; r < kRows; r += L::kWidth) {
        L::store(value_steps_ + i * kRows + r, L::mul(L::load(step + r), most));
      }
    }
    SumQueue sums(partial_, added_minima_);
    for (int run = 0; run < runs_; ++run) {
      const float* scales = value_scales_ + run * kAttentionTileSlots;
      const float* minima = value_minima_ + run * kAttentionTileSlots;
      std::int16_t* to = value_factors_ + run * kRows * kAttentionTileSlots;
      lines.step(rows);
      for (int r = 0; r < rows; ++r, to += kAttentionTileSlots) {
        const float* row = weights + r * kAttentionTileSlots;
        scale_weights(row, L::set(unit[r]), scales, to);
        sums.add_product(row, minima, kAttentionTileSlots);
      }
    }
    sums.flush();
  }

  const std::int16_t* value_factors(int run, int slot) const {
    return value_factors_ + run * kRows * kAttentionTileSlots + slot;
  }
  const float* value_steps(int page, int run) const {
    return value_steps_ + (page * runs_ + run) * kRows;
  }
  /// out = decay * out + sum of weight * minimum.
  void add_minima(int rows, const float* decay, float* out, std::ptrdiff_t out_stride) const {
    for (int r = 0; r < rows; ++r, out += out_stride) {
      const typename L::Floats factor = L::set(decay[r]);
      for (int d = 0; d < head_dim_; d += L::kWidth) {
        const typename L::Floats sum = L::set(added_minima_[d / kValueScaleRun * rows + r]);
        L::store(out + d, L::fma(L::load(out + d), factor, sum));
      }
    }
  }

 private:
  /// Dot products in 16 lanes, eight of them added up at once. Results go to consecutive places.
  class SumQueue {
   public:
    SumQueue(float* partial, float* results) : partial_(partial), results_(results) {}
    /// Of the next result.
    int place() const { return place_ + count_; }
    /// REQUIRES: n % 16 == 0.
    MEMDECAY_INLINE void add_product(const float* a, const float* b, int n) {
      constexpr int kParts = 16 / L::kWidth;
      typename L::Floats lanes[std::size_t{kParts}];
      MEMDECAY_UNROLL
      for (int i = 0; i < kParts; ++i) lanes[i] = L::zero();
      MEMDECAY_ROLLED
      for (int at = 0; at < n; at += 16) {
        MEMDECAY_UNROLL
        for (int i = 0; i < kParts; ++i) {
          const int k = at + i * L::kWidth;
          lanes[i] = L::fma(L::load(a + k), L::load(b + k), lanes[i]);
        }
      }
      MEMDECAY_UNROLL
      for (int i = 0; i < kParts; ++i) {
        L::store(partial_ + count_ * 16 + i * L::kWidth, lanes[i]);
      }
      if (++count_ == 8) flush();
    }
    /// Overwrites up to 7 places past the last.
    MEMDECAY_INLINE void flush() {
      if (count_ == 0) return;
      _mm256_storeu_ps(results_ + place_, sum_sixteens<L>(partial_));
      place_ += count_;
      count_ = 0;
    }

   private:
    float* partial_;  ///< [8][16]
    float* results_;
    int place_ = 0;
    int count_ = 0;
  };

  static float most_of(const float* x, int n) {
    typename L::Floats most = L::zero();
    for (int i = 0; i < n; i += L::kWidth) most = L::max(L::load(x + i), most);
    return L::max_lane(most);
  }

  static float read_scales(const std::uint16_t* halves, int n, float* to) {
    for (int i = 0; i < n; i += L::kWidth) L::store(to + i, L::load_half(halves + i));
    return most_of(to, n);
  }

  static void divide(float* x, int n, float by) {
    const typename L::Floats factor = L::set(by > kLeastFactor ? 1.0f / by : 0.0f);
    for (int i = 0; i < n; i += L::kWidth) L::store(x + i, L::mul(L::load(x + i), factor));
  }

  static MEMDECAY_INLINE void scale_weights(const float* weights, typename L::Floats unit,
                                            const float* scales, std::int16_t* to) {
    MEMDECAY_UNROLL
    for (int s = 0; s < kAttentionTileSlots; s += 2 * L::kWidth) {
      const int t = s + L::kWidth;
      L::store_factors(to + s,
                       L::mul(L::mul(L::load(weights + s), unit), L::load(scales + s)),
                       L::mul(L::mul(L::load(weights + t), unit), L::load(scales + t)));
    }
  }

  int head_dim_ = 0;
  int depth_ = 0;  ///< head_dim, rounded up
  int runs_ = 0;
  int page_slots_ = 0;
  float* key_scales_ = nullptr;    ///< [pages][depth], over the page's largest
  float* key_minima_ = nullptr;    ///< [pages][depth]
  float key_most_[kMaxTilePages] = {};
  float* value_scales_ = nullptr;  ///< [runs][kAttentionTileSlots], over the page's largest
  float* value_minima_ = nullptr;  ///< [runs][kAttentionTileSlots]
  float* value_most_ = nullptr;    ///< [pages][runs]
  float* value_steps_ = nullptr;   ///< [pages][runs][kRows]
  float* key_steps_ = nullptr;     ///< [pages][kRows]
  float* key_bases_ = nullptr;     ///< [quantized pages][rows]
  int first_base_[kMaxTilePages] = {};
  float* added_minima_ = nullptr;  ///< [runs][rows]
  std::int16_t* key_factors_ = nullptr;    ///< [pages][kRows][depth]
  std::int16_t* value_factors_ = nullptr;  ///< [runs][kRows][kAttentionTileSlots]
  float* partial_ = nullptr;
};

}  // namespace
}  // namespace memdecay
