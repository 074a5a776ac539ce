#include "policy/classifier/region_classifier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/log_softmax.h"

namespace memdecay {
namespace {

std::size_t size_of(std::int32_t count) {
  return static_cast<std::size_t>(count);
}

/// y += a * x
void add_scaled(float a, std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
}

/// Sums over the tokens around each one; the smoothing needs no mean, only an order.
std::vector<RegionScores> smoothed(const std::vector<RegionScores>& scores, std::size_t reach) {
  std::vector<std::array<double, kRegionCount>> before(scores.size() + 1);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t r = 0; r < kRegionCount; ++r)
      before[i + 1][r] = before[i][r] + double{scores[i][r]};
  }
  std::vector<RegionScores> sums(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::size_t begin = i - std::min(i, reach);
    const std::size_t end = std::min(scores.size(), i + reach + 1);
    for (std::size_t r = 0; r < kRegionCount; ++r)
      sums[i][r] = static_cast<float>(before[end][r] - before[begin][r]);
  }
  return sums;
}

}  // namespace

bool ClassifierShape::is_sane() const {
  const auto within = [](std::int32_t value, std::int32_t low, std::int32_t high) {
    return value >= low && value <= high;
  };
  return within(embedding_width, 1, 1 << 15) && within(projected_width, 1, 256) &&
         within(hidden_width, 1, 1024) && within(near_tokens, 0, 64) &&
         within(wide_tokens, 0, 1024) && within(smooth_tokens, 0, 1024);
}

ClassifierWeights ClassifierWeights::zeros(const ClassifierShape& shape) {
  ClassifierWeights weights;
  const std::size_t hidden = size_of(shape.hidden_width);
  weights.projection.resize(size_of(shape.embedding_width) * size_of(shape.projected_width));
  weights.hidden.resize(shape.inputs() * hidden);
  weights.hidden_bias.resize(hidden);
  weights.output.resize(hidden * kRegionCount);
  weights.output_bias.resize(kRegionCount);
  return weights;
}

bool ClassifierWeights::fits(const ClassifierShape& shape) const {
  const ClassifierWeights right = zeros(shape);
  return projection.size() == right.projection.size() && hidden.size() == right.hidden.size() &&
         hidden_bias.size() == right.hidden_bias.size() && output.size() == right.output.size() &&
         output_bias.size() == right.output_bias.size();
}

ClassifierWindow classifier_window(const ClassifierShape& shape, std::size_t window, std::size_t i,
                                   std::size_t count) {
  const std::size_t reach = size_of(window < 3 ? shape.near_tokens : shape.wide_tokens);
  if (window == 0) return {i, i + 1};
  const bool is_left = window % 2 == 1;
  if (is_left) return {i - std::min(i, reach), i};
  return {i + 1, std::min(count, i + 1 + reach)};
}

void classifier_inputs(const ClassifierShape& shape, const ClassifierText& text, std::size_t i,
                       std::size_t first_token, std::span<const float> projected_of,
                       std::span<float> x) {
  const std::size_t width = size_of(shape.projected_width);
  std::fill(x.begin(), x.end(), 0.0F);
  for (std::size_t w = 0; w < ClassifierShape::kWindows; ++w) {
    const ClassifierWindow window = classifier_window(shape, w, i, text.rows.size());
    if (window.begin >= window.end) continue;
    const float share = 1.0F / static_cast<float>(window.end - window.begin);
    const std::span<float> mean = x.subspan(w * width, width);
    for (std::size_t j = window.begin; j < window.end; ++j)
      add_scaled(share, projected_of.subspan((j - first_token) * width, width), mean);
  }
  const std::size_t at = ClassifierShape::kWindows * width;
  x[at] = std::log2(1.0F + static_cast<float>(i)) / 12.0F;
  x[at + 1] = std::log2(1.0F + static_cast<float>(text.places[i])) / 8.0F;
}

RegionClassifier::RegionClassifier(const ClassifierShape& shape, ClassifierWeights weights)
    : shape_(shape), weights_(std::move(weights)) {
  MEMDECAY_CHECK(shape_.is_sane());
  MEMDECAY_CHECK(weights_.fits(shape_));
}

void RegionClassifier::project(std::span<const float> embedding, std::span<float> out) const {
  const std::size_t width = size_of(shape_.projected_width);
  MEMDECAY_CHECK(embedding.size() == size_of(shape_.embedding_width));
  MEMDECAY_CHECK(out.size() == width);
  std::fill(out.begin(), out.end(), 0.0F);
  const std::span<const float> projection = weights_.projection;
  for (std::size_t i = 0; i < embedding.size(); ++i)
    add_scaled(embedding[i], projection.subspan(i * width, width), out);
}

std::vector<RegionScores> RegionClassifier::log_probabilities(
    const ClassifierText& text, std::span<const float> projected) const {
  MEMDECAY_CHECK(text.places.size() == text.rows.size());
  const std::size_t count = text.rows.size();
  const std::size_t width = size_of(shape_.projected_width);
  std::vector<float> projected_of(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const float> row = projected.subspan(size_of(text.rows[i]) * width, width);
    std::copy(row.begin(), row.end(),
              projected_of.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  const std::size_t hidden_width = size_of(shape_.hidden_width);
  const std::span<const float> hidden_weights = weights_.hidden;
  std::vector<float> x(shape_.inputs());
  std::vector<float> hidden(hidden_width);
  std::vector<RegionScores> scores(count);
  for (std::size_t i = 0; i < count; ++i) {
    classifier_inputs(shape_, text, i, 0, projected_of, x);
    hidden = weights_.hidden_bias;
    for (std::size_t k = 0; k < x.size(); ++k)
      add_scaled(x[k], hidden_weights.subspan(k * hidden_width, hidden_width), hidden);
    std::copy(weights_.output_bias.begin(), weights_.output_bias.end(), scores[i].begin());
    for (std::size_t k = 0; k < hidden_width; ++k) {
      if (hidden[k] <= 0.0F) continue;
      for (std::size_t r = 0; r < kRegionCount; ++r)
        scores[i][r] += hidden[k] * weights_.output[k * kRegionCount + r];
    }
    log_softmax(scores[i], std::span<float>(scores[i]));
  }
  return scores;
}

std::vector<Region> RegionClassifier::classify(const ClassifierText& text,
                                               std::span<const float> projected) const {
  const std::vector<RegionScores> sums =
      smoothed(log_probabilities(text, projected), size_of(shape_.smooth_tokens));
  std::vector<Region> regions;
  regions.reserve(sums.size());
  for (const RegionScores& scores : sums) {
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    regions.push_back(kRegions[static_cast<std::size_t>(best)]);
  }
  return regions;
}

}  // namespace memdecay
