// A model with its team, and sequences whose pages may be sealed before they are full, dropped, and
// moved virtually: for tests of the forward pass that need no kv.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/transformer/loaded_model_for_test.h"

namespace memdecay {

inline std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

/// Of a vocabulary of 50.
inline std::vector<TokenId> random_tokens(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(to_size(count));
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 50);
  return tokens;
}

class PagedModel {
 public:
  PagedModel(std::span<const std::byte> model, Precision precision, int threads,
             const KernelTable& kernels = best_kernels())
      : model_(GgufFile::from_bytes(model, "test model").value(), precision, 32, threads, {256, 64},
               kernels) {}

  struct Sequence {
    std::vector<std::vector<std::vector<std::byte>>> slabs;  // by layer group, by page
    std::vector<std::vector<KvPageRef>> refs;
    std::vector<PagedKvView> views;
    int size = 0;
    Position rope_offset = 0;
    bool sealed = false;  // the next token begins a page
  };

  /// Makes room for `rows` more tokens: in a new page where `seal`, else in the last one first.
  SequenceSlice append(Sequence& sequence, int first_row, int rows, bool seal) const {
    SequenceSlice slice;
    slice.first_row = first_row;
    slice.rows = rows;
    slice.first_position = sequence.size;
    slice.rope_offset = sequence.rope_offset;
    sequence.slabs.resize(model_.groups.groups.size());
    sequence.refs.resize(model_.groups.groups.size());
    sequence.views.clear();
    for (std::size_t number = 0; number < model_.groups.groups.size(); ++number) {
      const KvPageLayout& layout = model_.groups.groups[number].layout;
      std::vector<KvPageRef>& refs = sequence.refs[number];
      bool fresh = seal || sequence.sealed;
      for (int left = rows; left > 0; fresh = true) {
        if (fresh || refs.empty()) {
          std::vector<std::byte>& slab = sequence.slabs[number].emplace_back(layout.page_bytes());
          refs.push_back({slab.data(), sequence.size + rows - left, 0, layout.format});
          refs.back().closed_before = has_window(number) ? 0 : sequence.rope_offset;
        }
        const int more = std::min(left, layout.page_tokens - refs.back().filled);
        refs.back().filled += more;
        left -= more;
      }
      sequence.views.push_back({&layout, refs, 0});
    }
    sequence.size += rows;
    sequence.sealed = false;
    slice.views = sequence.views;
    return slice;
  }

  /// Lets pages go of the layers without a window, by their numbers in the view, descending.
  void drop(Sequence& sequence, std::initializer_list<int> pages) const {
    for (std::size_t number = 0; number < model_.groups.groups.size(); ++number) {
      auto& refs = sequence.refs[number];
      for (const int page : pages)
        if (!has_window(number)) refs.erase(refs.begin() + page);
    }
  }

  /// Closes gaps of at least so many tokens, as kv does.
  void close_gaps(Sequence& sequence, int smallest) const {
    for (std::size_t number = 0; number < model_.groups.groups.size(); ++number) {
      if (has_window(number)) continue;
      Position won = 0, end = 0;
      const auto close_before = [&](Position place) {
        if (place - end >= smallest) won += place - end;
      };
      for (KvPageRef& page : sequence.refs[number]) {
        const Position place = page.first_position - page.closed_before;
        close_before(place);
        end = place + page.filled;
        page.closed_before += won;
        page.rope_shift -= won;
      }
      close_before(sequence.size - sequence.rope_offset);
      sequence.rope_offset += won;
      sequence.sealed = won > 0;
    }
  }

  void forward(std::span<const TokenId> tokens, std::span<const SequenceSlice> slices) {
    ASSERT_TRUE(model_.transformer->forward({tokens, slices}).ok());
  }

  /// Logits of the last forward().
  std::vector<float> logits(int rows) {
    std::vector<float> result;
    for (int begin = 0; begin < rows; begin += model_.transformer->max_logit_rows()) {
      std::vector<int> some(to_size(std::min(rows - begin, model_.transformer->max_logit_rows())));
      for (std::size_t i = 0; i < some.size(); ++i) some[i] = begin + static_cast<int>(i);
      const auto logits = model_.transformer->logits(some);
      result.insert(result.end(), logits.begin(), logits.end());
    }
    return result;
  }

  const GgufFile& file() const { return model_.file; }
  const ModelConfig& config() const { return model_.config; }

 private:
  bool has_window(std::size_t group) const { return model_.groups.groups[group].window > 0; }

  LoadedModel model_;
};

}  // namespace memdecay
