// CodedTile: what the codes of a tile are multiplied with, 16-bit factors of queries and of
// weights.
//
// K: a channel's scale goes into the query. With Q = max |q| of the row and S = the largest scale
// of the page,
//     score = sum of code * round(q / Q * scale / S * 32767)  * (Q * S / 32767) + sum of q *
//     minimum.
// V: a slot's scale goes into its weight. With P = the largest weight of the row in the tile, S =
// the largest scale in this run of 32 dimensions among the filled slots of those pages that the row
// sees,
//     out += sum of code * round(weight * 32767 / (P * S) * scale)  * (P * S / 32767)
// over neighbouring pages with codes of as many bits, where the sum of weight * minimum was added
// before. Sums with minima stay in fp32, in 16 lanes and then a fixed tree. So a result depends on
// the row and the pages that it sees alone, as it does for fp16; a factor's error is at most 2^-16
// of the largest.
// Included inside a target region.
#pragma once

#include "kernels/generic/attention/dot_queue.h"
#include "kernels/generic/attention/line_queue.h"
#include "kernels/generic/attention/register_tile.h"

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
    value_steps_ = take(runs_ * kRows);
    key_steps_ = take(pages * kRows);
    key_bases_ = take(pages * kRows);
    added_minima_ = take(kRows * runs_);
    key_factors_ = reinterpret_cast<std::int16_t*>(take(pages * kRows * depth_ / 2));
    value_factors_ =
        reinterpret_cast<std::int16_t*>(take(runs_ * kRows * kAttentionTileSlots / 2 + 16));
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
    std::fill(minima + head_dim_, minima + depth_, 0.0f);
  }

  /// `units` are the rows of q over their largest number, times kMostFactor; both [rows][stride],
  /// with zeros up to a multiple of 32.
  void make_key_factors(int pages, const bool* coded, int rows, const float* q, const float* units,
                        const float* largest, std::ptrdiff_t stride, LineQueue& lines) {
    DotQueue<L> sums(partial_, key_bases_);
    const int depth = depth_;
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
        const float* row = q + r * stride;
        DotProduct<L> sum;
        MEMDECAY_ROLLED
        for (int d = 0; d < depth; d += 2 * L::kWidth) {
          const int e = d + L::kWidth;
          L::store_factors(to + d, L::mul(L::load(unit + d), L::load(scales + d)),
                           L::mul(L::load(unit + e), L::load(scales + e)));
          sum.add(L::load(row + d), L::load(minima + d), L::load(row + e), L::load(minima + e));
        }
        sums.push(sum);
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
      value_most_[page][run] = most_of(to, page_slots_);
    }
  }

  /// Of pages [begin, end), which are quantized, from the weights [rows][kAttentionTileSlots];
  /// `peak` is the largest weight of each row, `seen` are the pages that it sees.
  void make_value_factors(int begin, int end, int rows, const float* weights, const float* peak,
                          const PageMask* seen, LineQueue& lines) {
    alignas(64) float unit[kMostRuns][kRows];
    scale_peaks(begin, end, rows, peak, seen, unit);
    const int first = begin * page_slots_, last = end * page_slots_;
    DotQueue<L> sums(partial_, added_minima_);
    for (int run = 0; run < runs_; ++run) {
      const float* scales = value_scales_ + run * kAttentionTileSlots;
      const float* minima = value_minima_ + run * kAttentionTileSlots;
      std::int16_t* to = value_factors_ + run * kRows * kAttentionTileSlots;
      lines.step(rows);
      for (int r = 0; r < rows; ++r, to += kAttentionTileSlots) {
        const float* row = weights + r * kAttentionTileSlots;
        const typename L::Floats factor = L::set(unit[run][r]);
        DotProduct<L> sum;
        int s = first;
        MEMDECAY_ROLLED
        for (; s + 2 * L::kWidth <= last; s += 2 * L::kWidth) {
          const int t = s + L::kWidth;
          const typename L::Floats left = L::load(row + s), right = L::load(row + t);
          L::store_factors(to + s, L::mul(L::mul(left, factor), L::load(scales + s)),
                           L::mul(L::mul(right, factor), L::load(scales + t)));
          sum.add(left, L::load(minima + s), right, L::load(minima + t));
        }
        if (s < last) {
          // Half of two vectors: 16 slots of 16 lanes.
          const typename L::Floats left = L::load(row + s);
          L::store_factors(to + s, L::mul(L::mul(left, factor), L::load(scales + s)), L::zero());
          sum.add(left, L::load(minima + s), L::zero(), L::zero());
        }
        sums.push(sum);
      }
    }
    sums.flush();
  }

  /// out = decay * out + the sums of weight * minimum.
  void add_minima(int rows, const float* decay, float* out, std::ptrdiff_t out_stride) const {
    for (int r = 0; r < rows; ++r, out += out_stride) {
      const typename L::Floats factor = L::set(decay[r]);
      MEMDECAY_ROLLED
      for (int d = 0; d < head_dim_; d += L::kWidth) {
        const typename L::Floats sum = L::set(added_minima_[d / kValueScaleRun * rows + r]);
        L::store(out + d, L::fma(L::load(out + d), factor, sum));
      }
    }
  }

  const std::int16_t* value_factors(int run, int slot) const {
    return value_factors_ + run * kRows * kAttentionTileSlots + slot;
  }
  const float* value_steps(int run) const { return value_steps_ + run * kRows; }

 private:
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

  /// kMostFactor / (P * S) of each run and row, and its reciprocal as the step.
  void scale_peaks(int begin, int end, int rows, const float* peak, const PageMask* seen,
                   float (&unit)[kMostRuns][kRows]) {
    const typename L::Floats limit = L::set(kMostFactor);
    for (int run = 0; run < runs_; ++run) {
      alignas(64) float most[kRows] = {};
      for (int r = 0; r < rows; ++r) {
        if (r > 0 && seen[r] == seen[r - 1]) {
          most[r] = most[r - 1];
          continue;
        }
        for (int p = begin; p < end; ++p) {
          if ((seen[r] >> p & 1U) != 0) most[r] = std::max(most[r], value_most_[p][run]);
        }
      }
      for (int r = 0; r < kRows; r += L::kWidth) {
        const typename L::Floats top = L::mul(L::load(peak + r), L::load(most + r));
        L::store(unit[run] + r, L::zero_unless_above(L::div(limit, top), top, kLeastFactor));
        L::store(value_steps_ + run * kRows + r,
                 L::zero_unless_above(L::div(top, limit), top, kLeastFactor));
      }
    }
  }

  int head_dim_ = 0;
  int depth_ = 0;  ///< head_dim, rounded up
  int runs_ = 0;
  int page_slots_ = 0;
  float* key_scales_ = nullptr;  ///< [pages][depth], over the page's largest
  float* key_minima_ = nullptr;  ///< [pages][depth]
  float key_most_[kMaxTilePages] = {};
  float* value_scales_ = nullptr;  ///< [runs][kAttentionTileSlots]
  float* value_minima_ = nullptr;  ///< [runs][kAttentionTileSlots]
  float value_most_[kMaxTilePages][kMostRuns] = {};
  float* value_steps_ = nullptr;  ///< [runs][kRows]
  float* key_steps_ = nullptr;    ///< [pages][kRows]
  float* key_bases_ = nullptr;    ///< [quantized pages][rows]
  int first_base_[kMaxTilePages] = {};
  float* added_minima_ = nullptr;          ///< [runs][rows]
  std::int16_t* key_factors_ = nullptr;    ///< [pages][kRows][depth]
  std::int16_t* value_factors_ = nullptr;  ///< [runs][kRows][kAttentionTileSlots]
  float* partial_ = nullptr;
};

}  // namespace
}  // namespace memdecay
