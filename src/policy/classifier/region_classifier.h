// RegionClassifier: regions from tokens alone, for text of which nobody says who speaks: a raw
// prompt, or a whole transcript that a client sends as one message. Where chat structure is known,
// region_rules.h knows better.
//
// A two-layer perceptron a token (A2). Its inputs are the token's embedding and the mean embeddings
// of its neighbours, all through one learned linear projection, and two numbers of position:
//   x = [P e_i, mean P e_{i-near..i-1}, mean P e_{i+1..i+near}, the same over `wide`,
//        log2(1 + i) / 12, log2(1 + place in its segment) / 8]
//   p = softmax(W2 relu(W1 x + b1) + b2)
// then log p is averaged over the `smooth` tokens to each side, because regions come in runs. The
// projection is linear, so each distinct token is projected once and means are taken afterwards.
// Not a trainer (classifier_training.h) and not a file (region_classifier_file.h).
// Immutable; any thread. Cost: embedding_width * projected_width a distinct token, then about
// inputs * hidden_width a token.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/region.h"

namespace memdecay {

struct ClassifierShape {
  std::int32_t embedding_width = 0;  ///< of the model whose embeddings these are
  std::int32_t projected_width = 32;
  std::int32_t hidden_width = 48;
  std::int32_t near_tokens = 3;
  std::int32_t wide_tokens = 32;
  std::int32_t smooth_tokens = 8;

  static constexpr std::size_t kWindows = 5;
  static constexpr std::size_t kPositionInputs = 2;
  std::size_t inputs() const {
    return kWindows * static_cast<std::size_t>(projected_width) + kPositionInputs;
  }
  /// Within the limits of what is sensible, so that sizes cannot overflow.
  bool is_sane() const;
  friend bool operator==(const ClassifierShape&, const ClassifierShape&) = default;
};

/// Row-major; the inner index is the output's, so that products run along memory.
struct ClassifierWeights {
  std::vector<float> projection;   ///< [embedding_width][projected_width]
  std::vector<float> hidden;       ///< [inputs][hidden_width]
  std::vector<float> hidden_bias;  ///< [hidden_width]
  std::vector<float> output;       ///< [hidden_width][kRegionCount]
  std::vector<float> output_bias;  ///< [kRegionCount]

  /// All zero, of the sizes that the shape demands.
  static ClassifierWeights zeros(const ClassifierShape& shape);
  bool fits(const ClassifierShape& shape) const;
};

/// A text as a view: token i is row rows[i] of a table of embeddings.
struct ClassifierText {
  std::span<const std::int32_t> rows;    ///< [tokens]
  std::span<const std::int32_t> places;  ///< [tokens]: tokens since its segment began, from 0
};

using RegionScores = std::array<float, kRegionCount>;

class RegionClassifier {
 public:
  /// REQUIRES: shape.is_sane(), weights.fits(shape).
  RegionClassifier(const ClassifierShape& shape, ClassifierWeights weights);

  const ClassifierShape& shape() const { return shape_; }
  const ClassifierWeights& weights() const { return weights_; }

  /// REQUIRES: embedding_width values in, projected_width out.
  void project(std::span<const float> embedding, std::span<float> out) const;

  /// Log-probabilities of each token, not smoothed. `projected` is [rows][projected_width].
  std::vector<RegionScores> log_probabilities(const ClassifierText& text,
                                              std::span<const float> projected) const;
  /// The likeliest region of each token after smoothing; the stronger one where two are equal.
  std::vector<Region> classify(const ClassifierText& text, std::span<const float> projected) const;

 private:
  ClassifierShape shape_;
  ClassifierWeights weights_;
};

/// The tokens of window `window` around token i of `count`: [begin, end), empty at the edges.
struct ClassifierWindow {
  std::size_t begin = 0;
  std::size_t end = 0;
};
ClassifierWindow classifier_window(const ClassifierShape& shape, std::size_t window, std::size_t i,
                                   std::size_t count);

/// The inputs of token i: what inference and training share. `projected_of` is [tokens from
/// first_token on][projected_width] and holds all windows of i. REQUIRES: x has inputs().
void classifier_inputs(const ClassifierShape& shape, const ClassifierText& text, std::size_t i,
                       std::size_t first_token, std::span<const float> projected_of,
                       std::span<float> x);

}  // namespace memdecay
