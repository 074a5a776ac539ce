// CodesPath: attention over the quantized pages of an item, which are read as they lie.
//
// Codes of 4 or 8 bits meet 16-bit factors, made by CodedTile, in the integer products of
// code_product.h, however many query rows there are. It serves the pages of a tile that are
// quantized; AttentionItem treats the others, and joins both in the order of pages. Per tile:
//
//     take_tile(), read_keys()      once, before the first block that sees something
//     score(), read_values()        each block: scores of the coded pages; scales of their values
//     begin_values(), add_values()  each block: out += weights V, one call per run_end()
//
// It also asks for memory ahead, since it knows how much work lies between: values while factors,
// scores and softmax are computed, the next tile's keys during the rest. Callers tell lines() of
// their own steps. Head sizes that are no multiple of 16 are not for it (serves()), so that every
// width of vectors reads the same heads. Bits of a row depend on the row and the pages that it
// sees. Included inside a target region.
#pragma once

#include "kernels/generic/attention/attention_scratch.h"
#include "kernels/generic/attention/code_product.h"
#include "kernels/generic/attention/query_block.h"

namespace memdecay {
namespace {

template <typename L>
class CodesPath {
 public:
  /// Steps of LineQueue that a row of softmax takes.
  static constexpr int kSoftmaxSteps = 4;

  /// All three outlive the path; `scratch` holds the item's queries in q.
  CodesPath(const AttentionArgs& args, const PageForms& forms, AttentionScratch<L>& scratch)
      : args_(args), layout_(*args.layout), forms_(forms), scratch_(scratch) {
    const int rows = std::min(args.rows * args.group, L::kMaxRows);
    steps_[0] = steps_of(layout_, 4, rows);
    steps_[1] = steps_of(layout_, 8, rows);
  }

  static bool serves(int head_dim) { return head_dim % 16 == 0; }

  /// Of the quantized pages that come first: no tile before them asks for theirs.
  void ask_for_first_keys() const {
    const int pages = std::min(args_.page_count, kAttentionTileSlots / layout_.page_tokens);
    int codes = 0, bytes = 0;
    for (int p = 0; p < pages; ++p) {
      if (!is_quantized(args_.pages[p].format)) continue;
      const int form = PageForms::index(args_.pages[p].format);
      codes = std::max(codes, forms_.key_code_bytes[form] / 64 * 64);
      bytes = std::max(bytes, forms_.key_bytes[form]);
    }
    // Scales first: see LineQueue.
    ask_for_lines(pages, codes, bytes);
    ask_for_lines(pages, 0, codes);
  }

  /// Whether the tile has pages for this path.
  bool take_tile(const AttentionTile& tile) {
    lines_ = {};
    value_scales_read_ = false;
    bool any = false;
    MEMDECAY_ROLLED
    for (int p = 0; p < tile.pages; ++p) {
      is_coded_[p] = serves(layout_.head_dim) && is_quantized(tile.format[p]);
      any = any || is_coded_[p];
    }
    return any;
  }

  bool is_coded(int page) const { return is_coded_[page]; }

  /// Whether all pages of the slots [slot, slot + count) are coded.
  bool all_coded(const AttentionTile& tile, int slot, int count) const {
    for (int p = slot / tile.page_slots; p * tile.page_slots < slot + count; ++p) {
      if (!is_coded_[p]) return false;
    }
    return true;
  }

  LineQueue& lines() { return lines_; }

  /// Scales and minima of the tile's keys; `block` is the first that sees something.
  void read_keys(const AttentionTile& tile, const QueryBlock& block) {
    ask_for_values(tile, block);
    if (!units_made_) make_units();
    units_made_ = true;
    const std::uint16_t* scales[kMaxTilePages] = {};
    MEMDECAY_ROLLED
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const int code_bytes = forms_.key_code_bytes[PageForms::index(tile.format[p])];
      scales[p] = reinterpret_cast<const std::uint16_t*>(tile.keys[p] + code_bytes);
      lines_.step(kReadSteps);
    }
    scratch_.coded.read_keys(scales, tile.pages);
  }

  /// Scores of the coded pages; minus infinity for runs of slots that no row of the block sees.
  template <int kRows>
  void score(const AttentionTile& tile, const QueryBlock& block) {
    const std::ptrdiff_t first = std::ptrdiff_t{block.first} * kQueryStride;
    scratch_.coded.template make_key_factors<kRows>(tile.pages, scratch_.q + first,
                                                    scratch_.units + first,
                                                    scratch_.largest + block.first, lines_);
    CodeProduct product;
    product.factor_stride = scratch_.coded.key_factor_stride();
    product.word_stride = 4 * tile.page_slots;
    product.out_stride = kAttentionTileSlots;
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const int bits = key_bits(tile.format[p]);
      if (bits != product.bits) multiply_all<kRows>(product);
      product.bits = bits;
      product.words_of_depth = code_words(bits, layout_.head_dim);
      score_page<kRows>(tile, block, p, product);
    }
    multiply_all<kRows>(product);
  }

  /// After score(), while its sums are on their way: what add_values() needs besides the weights.
  void read_values(const AttentionTile& tile, const QueryBlock& block) {
    block.find_seen_pages(args_, tile, seen_);
    if (value_scales_read_) return;
    value_scales_read_ = true;
    CodedTile<L>& coded = scratch_.coded;
    coded.begin_values();
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const std::byte* scales =
          tile.values[p] + forms_.value_code_bytes[PageForms::index(tile.format[p])];
      coded.read_values(p, reinterpret_cast<const std::uint16_t*>(scales), tile.filled[p]);
    }
    if (block.sees_all && run_end(tile, 0) == tile.pages) coded.expect_pages(seen_[0]);
  }

  /// Before the first add_values() of a block.
  void begin_values(const AttentionTile& tile, const QueryBlock& block) {
    ask_for_next_keys(tile, block.first == 0 ? tile.next_key_bytes : 0);
  }

  /// The end of the pages from `page` on whose values one call may add: codes of as many bits, or
  /// no codes.
  int run_end(const AttentionTile& tile, int page) const {
    if (tile.one_form) return tile.pages;
    const auto kind = [&](int p) { return is_coded_[p] ? value_bits(tile.format[p]) : 0; };
    int end = page + 1;
    while (end < tile.pages && kind(end) == kind(page)) ++end;
    return end;
  }

  /// out = decay * out + weights V over the pages of `values`, a run of codes.
  template <int kRows>
  void add_values(const AttentionTile& tile, const ValueProduct& values,
                  const BlockSoftmax& state) {
    CodedTile<L>& coded = scratch_.coded;
    coded.template make_value_factors<kRows>(values.page_begin, values.page_end, values.weights,
                                             state.peak, seen_, lines_);
    // Pages that nobody sees are passed over.
    int begin = values.page_begin, end = values.page_end;
    while (begin < end && values.visible[begin].end == 0) ++begin;
    while (begin < end && values.visible[end - 1].end == 0) --end;
    if (begin < end) {
      multiply_values<kRows>(tile, values, begin, end);
    } else {
      coded.template add_minima<kRows>(values.decay, values.out, values.out_stride);
    }
  }

 private:
  /// Steps of LineQueue that reading a page's scales takes.
  static constexpr int kReadSteps = 3;
  /// Blocks of columns that one product of kRows rows takes at once.
  template <int kRows>
  static constexpr int kBlocks = 4 * kRows <= L::kMostSums ? 2 : 1;

  /// Columns of one step of a product of so many rows.
  static int span_of(int rows) { return (4 * rows <= L::kMostSums ? 4 : 2) * L::kWidth; }

  // ---- memory

  /// The bytes [begin, end) of the first pages' keys, a line of each page in turn.
  void ask_for_lines(int pages, int begin, int end) const {
    for (int at = begin; at < end; at += 64) {
      for (int p = 0; p < pages; ++p) {
        _mm_prefetch(reinterpret_cast<const char*>(forms_.head(args_.pages[p]) + at), _MM_HINT_T0);
      }
    }
  }

  /// Steps of LineQueue in a tile, by the bits of a code.
  struct Steps {
    float keys, values;  ///< from read_keys() to the softmax's end, from there to the tile's
  };

  static Steps steps_of(const KvPageLayout& layout, int bits, int rows) {
    const int pages = kAttentionTileSlots / layout.page_tokens, span = span_of(rows);
    const int keys = kAttentionTileSlots / span * code_words(bits, layout.head_dim) +
                     pages * (kReadSteps + rows) + rows * kSoftmaxSteps;
    const int values =
        pages * ((layout.head_dim + span - 1) / span) * code_words(bits, layout.page_tokens) +
        layout.value_runs() * rows;
    return {static_cast<float>(keys), static_cast<float>(values)};
  }

  /// From here to the softmax, memory is asked for the tile's values.
  void ask_for_values(const AttentionTile& tile, const QueryBlock& block) {
    int bytes = 0;
    MEMDECAY_ROLLED
    for (int p = 0; p < tile.pages; ++p) {
      bytes = std::max(bytes, forms_.value_bytes[PageForms::index(tile.format[p])]);
    }
    const int scales = forms_.value_code_bytes[PageForms::index(tile.format[0])];
    const Steps& steps = steps_[key_bits(tile.format[0]) == 8 ? 1 : 0];
    lines_ =
        LineQueue::over(tile.values, tile.pages, scales, block.first == 0 ? bytes : 0, steps.keys);
  }

  /// From here to the tile's end, for the next tile's keys.
  void ask_for_next_keys(const AttentionTile& tile, int bytes) {
    const int scales = forms_.key_code_bytes[PageForms::index(tile.format[0])];
    const Steps& steps = steps_[value_bits(tile.format[0]) == 8 ? 1 : 0];
    lines_ = LineQueue::over(tile.next_keys, tile.pages, scales, bytes, steps.values);
  }

  // ---- scales

  /// The item's queries, each row's largest number kMostFactor.
  void make_units() {
    for (int r = 0; r < args_.rows * args_.group; ++r) {
      const float* q = scratch_.q + std::ptrdiff_t{r} * kQueryStride;
      float* units = scratch_.units + std::ptrdiff_t{r} * kQueryStride;
      typename L::Floats most = L::zero();
      for (int d = 0; d < layout_.head_dim; d += L::kWidth) {
        const typename L::Floats x = L::load(q + d);
        most = L::max(L::max(x, L::sub(L::zero(), x)), most);
      }
      const float largest = L::max_lane(most);
      const bool counts = largest > kLeastFactor;
      scratch_.largest[r] = counts ? largest : 0.0f;
      const typename L::Floats factor = L::set(counts ? kMostFactor / largest : 0.0f);
      for (int d = 0; d < layout_.head_dim + 16; d += L::kWidth) {
        L::store(units + d, L::mul(L::load(q + d), factor));
      }
    }
  }

  // ---- products

  template <int kRows>
  void score_page(const AttentionTile& tile, const QueryBlock& block, int page,
                  CodeProduct& product) {
    const CodedTile<L>& coded = scratch_.coded;
    const int span = std::min(2 * L::kWidth, tile.page_slots);
    for (int slot = 0; slot < tile.page_slots; slot += span) {
      const int at = page * tile.page_slots + slot;
      if (block.visible[page].begin >= slot + span || block.visible[page].end <= slot) {
        hide_slots(scratch_.scores, kRows, at, span);
        continue;
      }
      const int b = product.blocks++;
      product.words[b][0] = tile.keys[page] + 4 * slot;
      product.factors[b] = coded.key_factors(page);
      product.steps[b] = coded.key_steps(page);
      product.bases[b] = coded.key_bases(page);
      product.out[b] = scratch_.scores + at;
      product.first_vector_only[b] = span <= L::kWidth;
      if (product.blocks == kBlocks<kRows>) multiply_all<kRows>(product);
    }
  }

  /// Pages [begin, end), all dimensions.
  template <int kRows>
  void multiply_values(const AttentionTile& tile, const ValueProduct& values, int begin, int end) {
    const CodedTile<L>& coded = scratch_.coded;
    CodeProduct product;
    product.bits = value_bits(tile.format[begin]);
    product.pages = end - begin;
    product.words_of_depth = code_words(product.bits, tile.page_slots);
    product.word_stride = 4 * layout_.head_dim;
    product.factor_stride = kAttentionTileSlots;
    product.out_stride = values.out_stride;
    product.decay = values.decay;
    for (int column = 0; column < layout_.head_dim; column += 2 * L::kWidth) {
      const int run = column / kValueScaleRun;
      const int b = product.blocks++;
      for (int p = begin; p < end; ++p) product.words[b][p - begin] = tile.values[p] + 4 * column;
      product.factors[b] = coded.value_factors(run, begin * tile.page_slots);
      product.steps[b] = coded.value_steps(run);
      product.bases[b] = coded.template added_minima<kRows>(run);
      product.out[b] = values.out + column;
      product.first_vector_only[b] = column + L::kWidth >= layout_.head_dim;
      if (product.blocks == kBlocks<kRows>) multiply_all<kRows>(product);
    }
    multiply_all<kRows>(product);
  }

  /// Takes the product's blocks, which are of one kind, and leaves none.
  template <int kRows>
  void multiply_all(CodeProduct& product) {
    if (product.blocks == 0) return;
    const bool bytes = product.bits == 8;
    if (product.blocks == kBlocks<kRows>) {
      bytes ? multiply_codes<L, 8, kRows, kBlocks<kRows>>(product, lines_)
            : multiply_codes<L, 4, kRows, kBlocks<kRows>>(product, lines_);
    } else {
      bytes ? multiply_codes<L, 8, kRows, 1>(product, lines_)
            : multiply_codes<L, 4, kRows, 1>(product, lines_);
    }
    product.blocks = 0;
  }

  const AttentionArgs& args_;
  const KvPageLayout& layout_;
  const PageForms& forms_;
  AttentionScratch<L>& scratch_;
  LineQueue lines_;
  Steps steps_[2];                     ///< over codes of 4 bits, of 8
  bool is_coded_[kMaxTilePages] = {};  ///< read by this path
  PageMask seen_[L::kMaxRows] = {};    ///< the pages that each row of the block sees
  bool units_made_ = false;
  bool value_scales_read_ = false;
};

}  // namespace
}  // namespace memdecay
