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
#include "kernels/generic/attention/lane_tree.h"
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
    value_steps_ = take(runs_ * kRows);
    key_steps_ = take(pages * kRows);
    key_bases_ = take(pages * kRows + 8);
    added_minima_ = take(kRows * runs_ + 8);
    key_factors_ = reinterpret_cast<std::int16_t*>(take(pages * kRows * depth_ / 2));
    value_factors_ =
        reinterpret_cast<std::int16_t*>(take(runs_ * kRows * kAttentionTileSlots / 2 + 16));
    partial_ = take(8 * 16);
  }

  // ---- keys

  /// Begins a tile: `scales` are those of each page's keys, or null where it has none.
  void read_keys(const std::uint16_t* const* scales, int pages) {
    for (int p = 0; p < pages; ++p) {
      key_scales_[p] = scales[p];
      if (scales[p] == nullptr) continue;
      Most most;
      for (int d = 0; d < head_dim_; d += 16) most.add_sixteen(scales[p] + d);
      most.store(partial_ + 16 * p);
    }
    const __m256 most = most_of_sixteens(partial_);
    const __m256 counts = _mm256_cmp_ps(most, _mm256_set1_ps(kLeastFactor), _CMP_GT_OQ);
    _mm256_store_ps(key_reciprocal_,
                    _mm256_and_ps(counts, _mm256_div_ps(_mm256_set1_ps(1.0f), most)));
    _mm256_store_ps(key_step_, _mm256_div_ps(most, _mm256_set1_ps(kMostFactor)));
  }

  /// `units` are the rows of q over their largest number, times kMostFactor; both
  /// [rows][kQueryStride], with zeros up to a multiple of 32. Room for 16 is read of `largest`.
  template <int kRowCount>
  void make_key_factors(int pages, const float* q, const float* units, const float* largest,
                        LineQueue& lines) {
    DotQueue<L> sums(partial_, key_bases_);
    for (int p = 0; p < pages; ++p) {
      if (key_scales_[p] == nullptr) continue;
      const typename L::Floats step = L::set(key_step_[p]);
      L::store(key_steps_ + p * kRows, L::mul(L::load(largest), step));
      first_base_[p] = sums.place();
      lines.step(kRowCount);
      key_rows<0, kRowCount>(p, q, units, sums);
    }
    sums.flush();
  }

  const std::int16_t* key_factors(int page) const { return key_factors_ + page * kRows * depth_; }
  std::ptrdiff_t key_factor_stride() const { return depth_; }
  const float* key_steps(int page) const { return key_steps_ + page * kRows; }
  const float* key_bases(int page) const { return key_bases_ + first_base_[page]; }

  // ---- values

  /// Before the first read_values() of a tile.
  void begin_values() {
    peak_pages_ = kNone;
    all_filled_ = true;
  }
  /// `scales` are those of a page's first run. Slots past the filled ones may hold anything finite.
  void read_values(int page, const std::uint16_t* scales, int filled) {
    const int sixteens = page_slots_ / 16;
    all_filled_ = all_filled_ && filled == page_slots_;
    MEMDECAY_ROLLED
    for (int i = 0; i < sixteens; ++i) {
      value_scales_[page * sixteens + i] = scales + 16 * i;
      filled_[page * sixteens + i] = filled - 16 * i;
    }
  }
  /// After the last: these pages will be asked for together, and there is time now.
  void expect_pages(PageMask pages) { find_peaks(pages); }

  /// Of pages [begin, end), which are quantized, from the weights [rows][kAttentionTileSlots];
  /// `peak` is the largest weight of each row, `seen` are the pages that it sees.
  template <int kRowCount>
  void make_value_factors(int begin, int end, const float* weights, const float* peak,
                          const PageMask* seen, LineQueue& lines) {
    alignas(64) float unit[kMostRuns][kRows];
    scale_peaks<kRowCount>((1U << end) - (1U << begin), peak, seen, unit);
    DotQueue<L> sums(partial_, added_minima_);
    const int first = begin * page_slots_, last = end * page_slots_;
    for (int run = 0; run < runs_; ++run) {
      lines.step(kRowCount);
      if (all_filled_ && last - first == kAttentionTileSlots) {
        value_rows<0, kRowCount, true>(run, 0, kAttentionTileSlots, weights, unit[run], sums);
      } else {
        value_rows<0, kRowCount, false>(run, first, last, weights, unit[run], sums);
      }
    }
    sums.flush();
  }

  /// The sums of weight * minimum of each row, one run of dimensions.
  template <int kRowCount>
  const float* added_minima(int run) const {
    return added_minima_ + run * kRowCount;
  }
  /// out = decay * out + those sums.
  template <int kRowCount>
  void add_minima(const float* decay, float* out, std::ptrdiff_t out_stride) const {
    for (int r = 0; r < kRowCount; ++r, out += out_stride) {
      const Floats factor = L::set(decay[r]);
      for (int d = 0; d < head_dim_; d += L::kWidth) {
        const Floats sum = L::set(added_minima<kRowCount>(d / kValueScaleRun)[r]);
        L::store(out + d, L::fma(L::load(out + d), factor, sum));
      }
    }
  }

  const std::int16_t* value_factors(int run, int slot) const {
    return value_factors_ + run * kRows * kAttentionTileSlots + slot;
  }
  const float* value_steps(int run) const { return value_steps_ + run * kRows; }

 private:
  using Floats = typename L::Floats;
  static constexpr int kParts = 16 / L::kWidth;
  static constexpr PageMask kNone = ~PageMask{0};  ///< no pages that anyone could mean
  /// Rows whose factors are made together: they share what is read of a page.
  static constexpr int kTogether = L::kWidth == 16 ? 12 : 3;

  /// The largest of many scales, in 16 lanes. Those that are no numbers count as 0.
  struct Most {
    Floats lanes[std::size_t{kParts}];
    Most() {
      for (int i = 0; i < kParts; ++i) lanes[i] = L::zero();
    }
    void add(int part, Floats scales) { lanes[part] = L::max(scales, lanes[part]); }
    void add_sixteen(const std::uint16_t* scales) {
      for (int i = 0; i < kParts; ++i) add(i, L::load_half(scales + i * L::kWidth));
    }
    void store(float* to) const {
      for (int i = 0; i < kParts; ++i) L::store(to + i * L::kWidth, lanes[i]);
    }
  };

  /// Two vectors of scales and of minima.
  struct Scales {
    Floats left, right, left_minima, right_minima;
  };

  /// Factors of rows [kFirst, kEnd) over one page's keys, and their sums with minima.
  template <int kFirst, int kEnd>
  void key_rows(int page, const float* q, const float* units, DotQueue<L>& sums) {
    constexpr int kCount = kEnd - kFirst < kTogether ? kEnd - kFirst : kTogether;
    const std::uint16_t* halves = key_scales_[page];
    const Floats reciprocal = L::set(key_reciprocal_[page]);
    DotProduct<L> sum[std::size_t{kCount}];
    for (int d = 0; d < head_dim_; d += 2 * L::kWidth) {
      const int e = d + L::kWidth;
      const bool whole = e < head_dim_;
      Scales scales{L::mul(L::load_half(halves + d), reciprocal), L::zero(),
                    L::load_half(halves + head_dim_ + d), L::zero()};
      if (whole) {
        scales.right = L::mul(L::load_half(halves + e), reciprocal);
        scales.right_minima = L::load_half(halves + head_dim_ + e);
      }
      std::int16_t* to = key_factors_ + (page * kRows + kFirst) * depth_ + d;
      MEMDECAY_UNROLL
      for (int r = 0; r < kCount; ++r, to += depth_) {
        const float* unit = units + (kFirst + r) * kQueryStride;
        const float* row = q + (kFirst + r) * kQueryStride;
        L::store_factors(to, L::mul(L::load(unit + d), scales.left),
                         L::mul(L::load(unit + e), scales.right));
        sum[r].add(L::load(row + d), scales.left_minima, L::load(row + e), scales.right_minima);
      }
    }
    MEMDECAY_UNROLL
    for (int r = 0; r < kCount; ++r) {
      // The 16 that a head lacks: here, too, a sum of -0 becomes 0.
      if (head_dim_ < depth_) sum[r].add(L::zero(), L::zero(), L::zero(), L::zero());
      sums.push(sum[r]);
    }
    if constexpr (kFirst + kCount < kEnd) key_rows<kFirst + kCount, kEnd>(page, q, units, sums);
  }

  /// Scales of a vector of slots; 0 past the filled ones, unless all are.
  template <bool kAllFilled>
  Floats value_scales(int run, int slot) const {
    const std::uint16_t* halves = value_scales_[slot / 16] + run * 2 * page_slots_ + slot % 16;
    const Floats scales = L::load_half(halves);
    if constexpr (kAllFilled) return scales;
    return L::keep_range(scales, 0, filled_[slot / 16] - slot % 16, L::zero());
  }
  Floats value_minima(int run, int slot) const {
    return L::load_half(value_scales_[slot / 16] + (run * 2 + 1) * page_slots_ + slot % 16);
  }

  /// Factors of rows [kFirst, kEnd) over the slots [begin, end) and one run of dimensions, and
  /// their sums with minima.
  template <int kFirst, int kEnd, bool kAllFilled>
  void value_rows(int run, int begin, int end, const float* weights, const float* unit,
                  DotQueue<L>& sums) {
    constexpr int kCount = kEnd - kFirst < kTogether ? kEnd - kFirst : kTogether;
    DotProduct<L> sum[std::size_t{kCount}];
    for (int s = begin; s < end; s += 2 * L::kWidth) {
      // The last may be half of two vectors: 16 slots of 16 lanes.
      const bool whole = s + L::kWidth < end;
      const int t = whole ? s + L::kWidth : s;
      Scales scales{value_scales<kAllFilled>(run, s), L::zero(), value_minima(run, s), L::zero()};
      if (whole) {
        scales.right = value_scales<kAllFilled>(run, t);
        scales.right_minima = value_minima(run, t);
      }
      std::int16_t* to = value_factors_ + (run * kRows + kFirst) * kAttentionTileSlots + s;
      MEMDECAY_UNROLL
      for (int r = 0; r < kCount; ++r, to += kAttentionTileSlots) {
        const float* row = weights + (kFirst + r) * kAttentionTileSlots;
        const Floats factor = L::set(unit[kFirst + r]);
        const Floats left = L::load(row + s), right = whole ? L::load(row + t) : L::zero();
        L::store_factors(to, L::mul(L::mul(left, factor), scales.left),
                         L::mul(L::mul(right, factor), scales.right));
        sum[r].add(left, scales.left_minima, right, scales.right_minima);
      }
    }
    MEMDECAY_UNROLL
    for (int r = 0; r < kCount; ++r) sums.push(sum[r]);
    if constexpr (kFirst + kCount < kEnd) {
      value_rows<kFirst + kCount, kEnd, kAllFilled>(run, begin, end, weights, unit, sums);
    }
  }

  /// peaks_ of these pages, unless the last call was for the same: blocks of rows often agree.
  void find_peaks(PageMask pages) {
    if (pages == peak_pages_) return;
    peak_pages_ = pages;
    if (all_filled_ && pages == (1U << (kAttentionTileSlots / page_slots_)) - 1) {
      find_tile_peaks();
      return;
    }
    for (int run = 0; run < runs_; ++run) {
      Most most;
      for (int p = 0; pages >> p != 0; ++p) {
        if ((pages >> p & 1U) == 0) continue;
        for (int slot = p * page_slots_; slot < (p + 1) * page_slots_; slot += 16) {
          for (int i = 0; i < kParts; ++i) {
            most.add(i, value_scales<false>(run, slot + i * L::kWidth));
          }
        }
      }
      most.store(partial_ + 16 * run);
    }
    _mm256_store_ps(peaks_, most_of_sixteens(partial_));
  }

  /// Of all pages of a tile whose slots are all filled.
  void find_tile_peaks() {
    for (int run = 0; run < runs_; ++run) {
      Most even, odd;
      MEMDECAY_UNROLL
      for (int i = 0; i < kSixteens; i += 2) {
        even.add_sixteen(value_scales_[i] + run * 2 * page_slots_);
        odd.add_sixteen(value_scales_[i + 1] + run * 2 * page_slots_);
      }
      for (int part = 0; part < kParts; ++part) even.add(part, odd.lanes[part]);
      even.store(partial_ + 16 * run);
    }
    _mm256_store_ps(peaks_, most_of_sixteens(partial_));
  }

  /// S of each run and row: of the row's pages among `pages`, which must be quantized. Columns past
  /// the rows may hold anything.
  template <int kRowCount>
  void find_row_peaks(PageMask pages, const PageMask* seen, float (&peaks)[kMostRuns][kRows]) {
    bool same = true;
    for (int r = 1; r < kRowCount; ++r) same = same && seen[r] == seen[0];
    for (int r = 0; r < (same ? 1 : kRowCount); ++r) {
      find_peaks(seen[r] & pages);
      for (int run = 0; run < runs_; ++run) {
        if (same) {
          L::store(peaks[run], L::set(peaks_[run]));
        } else {
          peaks[run][r] = peaks_[run];
        }
      }
    }
  }

  /// kMostFactor / (P * S) of each run and row, and its reciprocal as the step.
  template <int kRowCount>
  void scale_peaks(PageMask pages, const float* peak, const PageMask* seen,
                   float (&unit)[kMostRuns][kRows]) {
    alignas(64) float peaks[kMostRuns][kRows];
    find_row_peaks<kRowCount>(pages, seen, peaks);
    const Floats limit = L::set(kMostFactor);
    for (int run = 0; run < runs_; ++run) {
      const Floats top = L::mul(L::load(peak), L::load(peaks[run]));
      L::store(unit[run], L::zero_unless_above(L::div(limit, top), top, kLeastFactor));
      L::store(value_steps_ + run * kRows,
               L::zero_unless_above(L::div(top, limit), top, kLeastFactor));
    }
  }

  int head_dim_ = 0;
  int depth_ = 0;  ///< head_dim, rounded up
  int runs_ = 0;
  int page_slots_ = 0;
  const std::uint16_t* key_scales_[kMaxTilePages] = {};   ///< of each page; minima follow
  alignas(32) float key_reciprocal_[kMaxTilePages] = {};  ///< of the page's largest scale
  alignas(32) float key_step_[kMaxTilePages] = {};        ///< that over kMostFactor
  const std::uint16_t* value_scales_[kSixteens] = {};     ///< of each 16 slots, in the first run
  bool all_filled_ = false;                               ///< every slot of those pages
  alignas(32) float peaks_[8] = {};  ///< of each run: the largest scale in the pages of peak_pages_
  PageMask peak_pages_ = kNone;
  int filled_[kSixteens] = {};    ///< slots from there on that are filled; any number
  float* value_steps_ = nullptr;  ///< [runs][kRows]
  float* key_steps_ = nullptr;    ///< [pages][kRows]
  float* key_bases_ = nullptr;    ///< [quantized pages][rows]
  int first_base_[kMaxTilePages] = {};
  float* added_minima_ = nullptr;          ///< [runs][rows]
  std::int16_t* key_factors_ = nullptr;    ///< [pages][kRows][depth]
  std::int16_t* value_factors_ = nullptr;  ///< [runs][kRows][kAttentionTileSlots]
  float* partial_ = nullptr;               ///< [8][16]
};

}  // namespace
}  // namespace memdecay
