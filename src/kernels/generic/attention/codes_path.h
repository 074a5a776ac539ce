// CodesPath: attention over the quantized pages of an item, which are read as they lie.
//
// Codes of 4 or 8 bits meet 16-bit factors, made by CodedTile, in the integer products of
// code_product.h, however many query rows there are. It serves the pages of a tile that are
// quantized; AttentionItem treats the others, and joins both in the order of pages. Per tile:
//
//     take_tile(), read_keys()      once, before the first block that sees something
//     score()                       each block: scores of the coded pages
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
      : args_(args), layout_(*args.layout), forms_(forms), scratch_(scratch) {}

  static bool serves(int head_dim) { return head_dim % 16 == 0; }

  /// Of the quantized pages that come first: no tile before them asks for theirs.
  void ask_for_first_keys() const {
    const int pages = std::min(args_.page_count, kAttentionTileSlots / layout_.page_tokens);
    int bytes = 0;
    for (int p = 0; p < pages; ++p) {
      const KvFormat format = args_.pages[p].format;
      if (is_quantized(format)) bytes = std::max(bytes, forms_.key_bytes[PageForms::index(format)]);
    }
    for (int at = 0; at < bytes; at += 64) {
      for (int p = 0; p < pages; ++p) {
        _mm_prefetch(reinterpret_cast<const char*>(forms_.head(args_.pages[p]) + at), _MM_HINT_T0);
      }
    }
  }

  /// Whether the tile has pages for this path.
  bool take_tile(const AttentionTile& tile) {
    lines_ = {};
    value_scales_read_ = false;
    bool any = false;
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
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const KvPageLayout& form = forms_.layout[PageForms::index(tile.format[p])];
      scratch_.coded.read_keys(p, tile.keys[p] + form.key_code_bytes());
      lines_.step(kReadSteps);
    }
  }

  /// Scores of the coded pages; minus infinity for runs of slots that no row of the block sees.
  template <int kRows>
  void score(const AttentionTile& tile, const QueryBlock& block) {
    const std::ptrdiff_t first = std::ptrdiff_t{block.first} * kQueryStride;
    scratch_.coded.make_key_factors(tile.pages, is_coded_, kRows, scratch_.q + first,
                                    scratch_.units + first, scratch_.largest + block.first,
                                    kQueryStride, lines_);
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

  /// Before the first add_values() of a block of kRows rows.
  template <int kRows>
  void begin_values(const AttentionTile& tile, const QueryBlock& block) {
    ask_for_next_keys(tile, kRows, block.first == 0 ? tile.next_key_bytes : 0);
    if (!value_scales_read_) read_values(tile);
    value_scales_read_ = true;
    block.find_seen_pages(args_, tile, seen_);
  }

  /// The end of the pages from `page` on whose values one call may add: codes of as many bits, or
  /// no codes.
  int run_end(const AttentionTile& tile, int page) const {
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
    coded.make_value_factors(values.page_begin, values.page_end, kRows, values.weights, state.peak,
                             seen_, lines_);
    coded.add_minima(kRows, values.decay, values.out, values.out_stride);
    // Pages that nobody sees are passed over.
    int begin = values.page_begin, end = values.page_end;
    while (begin < end && values.visible[begin].end == 0) ++begin;
    while (begin < end && values.visible[end - 1].end == 0) --end;
    if (begin < end) multiply_values<kRows>(tile, values, begin, end);
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

  /// From here to the softmax, memory is asked for the tile's values.
  void ask_for_values(const AttentionTile& tile, const QueryBlock& block) {
    int bytes = 0;
    for (int p = 0; p < tile.pages && block.first == 0; ++p) {
      bytes = std::max(bytes, forms_.value_bytes[PageForms::index(tile.format[p])]);
    }
    const int words = kAttentionTileSlots / span_of(block.rows) *
                      code_words(key_bits(tile.format[0]), layout_.head_dim);
    lines_ = LineQueue::over(
        tile.values, tile.pages, bytes,
        words + tile.pages * (kReadSteps + block.rows) + block.rows * kSoftmaxSteps);
  }

  /// From here to the tile's end, for the next tile's keys.
  void ask_for_next_keys(const AttentionTile& tile, int rows, int bytes) {
    const int span = span_of(rows);
    const int words = tile.pages * ((layout_.head_dim + span - 1) / span) *
                      code_words(value_bits(tile.format[0]), tile.page_slots);
    lines_ = LineQueue::over(tile.next_keys, tile.pages, bytes,
                             words + tile.pages * kReadSteps + layout_.value_runs() * rows);
  }

  // ---- scales

  void read_values(const AttentionTile& tile) {
    for (int p = 0; p < tile.pages; ++p) {
      if (!is_coded_[p]) continue;
      const KvPageLayout& form = forms_.layout[PageForms::index(tile.format[p])];
      scratch_.coded.read_values(p, tile.keys[p] + form.key_bytes() + form.value_code_bytes(),
                                 tile.filled[p]);
      lines_.step(kReadSteps);
    }
  }

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
    for (int column = 0; column < layout_.head_dim; column += 2 * L::kWidth) {
      const int run = column / kValueScaleRun;
      const int b = product.blocks++;
      for (int p = begin; p < end; ++p) product.words[b][p - begin] = tile.values[p] + 4 * column;
      product.factors[b] = coded.value_factors(run, begin * tile.page_slots);
      product.steps[b] = coded.value_steps(run);
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
  bool is_coded_[kMaxTilePages] = {};  ///< read by this path
  PageMask seen_[L::kMaxRows] = {};    ///< the pages that each row of the block sees
  bool units_made_ = false;
  bool value_scales_read_ = false;
};

}  // namespace
}  // namespace memdecay
