#include "policy/classifier/classifier_training.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/seeded_random.h"

namespace memdecay {
namespace {

std::size_t size_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

void fill_normal(double deviation, SeededRandom& draws, std::vector<float>& out) {
  for (float& value : out) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - draws.unit()));
    value =
        static_cast<float>(deviation * radius * std::cos(2.0 * std::numbers::pi * draws.unit()));
  }
}

void add_scaled(float a, std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
}

/// In eight sums, so that it runs in vectors without leave to reorder.
float dot(std::span<const float> x, std::span<const float> y) {
  constexpr std::size_t kLanes = 8;
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  float sum = 0;
  for (; i < x.size(); ++i) sum += x[i] * y[i];
  for (const float lane : sums) sum += lane;
  return sum;
}

/// One array of weights with what Adam keeps of it.
class AdamArray {
 public:
  AdamArray(std::vector<float>& weights, bool decays)
      : weights_(&weights), decays_(decays), mean_(weights.size()), square_(weights.size()) {}

  void step(std::span<const float> gradient, int time, double rate, double decay) {
    constexpr float kMean = 0.9F, kSquare = 0.999F, kTiny = 1e-8F;
    const double mean_bias = 1.0 - std::pow(double{kMean}, time);
    const double square_bias = 1.0 - std::pow(double{kSquare}, time);
    const auto scale = static_cast<float>(rate / mean_bias);
    const auto square_scale = static_cast<float>(1.0 / square_bias);
    const float keep = decays_ ? static_cast<float>(1.0 - rate * decay) : 1.0F;
    std::vector<float>& weights = *weights_;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      mean_[i] = kMean * mean_[i] + (1.0F - kMean) * gradient[i];
      square_[i] = kSquare * square_[i] + (1.0F - kSquare) * gradient[i] * gradient[i];
      const float step = scale * mean_[i] / (std::sqrt(square_scale * square_[i]) + kTiny);
      weights[i] = keep * weights[i] - step;
    }
  }

 private:
  std::vector<float>* weights_;
  bool decays_;
  std::vector<float> mean_, square_;
};

/// Tokens [begin, end) of a text.
struct Chunk {
  std::size_t text = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Trainer {
 public:
  Trainer(const TrainingTexts& texts, const TrainingOptions& options)
      : texts_(texts),
        options_(options),
        shape_(options.shape),
        width_(size_of(shape_.projected_width)),
        draws_(options.seed),
        weights_(ClassifierWeights::zeros(shape_)),
        gradient_(weights_) {
    scale_ = input_scale();
    fill_normal(1.0 / std::sqrt(double(shape_.embedding_width)), draws_, weights_.projection);
    fill_normal(std::sqrt(2.0 / double(shape_.inputs())), draws_, weights_.hidden);
    fill_normal(std::sqrt(1.0 / double(shape_.hidden_width)), draws_, weights_.output);
    adam_ = {AdamArray(weights_.projection, true), AdamArray(weights_.hidden, true),
             AdamArray(weights_.hidden_bias, false), AdamArray(weights_.output, true),
             AdamArray(weights_.output_bias, false)};
    slots_.assign(texts_.embeddings.size() / size_of(shape_.embedding_width), -1);
    set_region_weights();
  }

  TrainedClassifier run(const std::function<void(const EpochReport&)>& on_epoch) {
    TrainedClassifier best{snapshot(), {}, 0};
    double best_f1 = -1;
    const std::size_t batches = batches_of(draw_chunks()).size();
    const double steps = double(options_.epochs) * double(batches);
    for (int epoch = 1; epoch <= options_.epochs; ++epoch) {
      EpochReport report;
      report.epoch = epoch;
      const std::vector<Chunk> chunks = draw_chunks();
      const auto all = batches_of(chunks);
      for (const std::span<const Chunk> batch : all) {
        report.loss += run_batch(batch) / double(all.size());
        ++time_;
        const double left = std::max(0.02, 1.0 - double(time_) / std::max(1.0, steps));
        apply(options_.learning_rate * left);
      }
      RegionClassifier now = snapshot();
      const RegionConfusion confusion = measure_classifier(now, texts_.embeddings, texts_.held_out);
      report.held_out_f1 = confusion.macro_f1();
      report.held_out_accuracy = confusion.accuracy();
      best.epochs.push_back(report);
      if (on_epoch) on_epoch(report);
      if (report.held_out_f1 > best_f1) {
        best_f1 = report.held_out_f1;
        best.classifier = std::move(now);
        best.best_epoch = epoch;
      }
      if (epoch - best.best_epoch >= options_.patience) break;
    }
    return best;
  }

 private:
  std::span<const float> embedding(std::size_t row) const {
    const std::size_t length = size_of(shape_.embedding_width);
    return texts_.embeddings.subspan(row * length, length);
  }

  /// Embeddings of small models differ in size by tens: learn on those of mean square 1.
  float input_scale() const {
    double sum = 0;
    for (const float value : texts_.embeddings) sum += double(value) * double(value);
    const double mean = sum / std::max(1.0, double(texts_.embeddings.size()));
    return mean > 0 ? static_cast<float>(1.0 / std::sqrt(mean)) : 1.0F;
  }

  void set_region_weights() {
    std::array<double, kRegionCount> tokens{};
    double all = 0;
    for (const LabelledText& text : texts_.training) {
      for (const Region label : text.labels) tokens[region_index(label)] += 1;
      all += double(text.labels.size());
    }
    for (std::size_t r = 0; r < kRegionCount; ++r) {
      region_weights_[r] = static_cast<float>(
          tokens[r] == 0 ? 0.0 : std::pow(all / tokens[r], options_.class_weight_power));
    }
  }

  RegionClassifier snapshot() const {
    ClassifierWeights copy = weights_;
    for (float& value : copy.projection) value *= scale_;
    return RegionClassifier(shape_, std::move(copy));
  }

  std::vector<Chunk> draw_chunks() {
    const std::size_t length = size_of(options_.chunk_tokens);
    std::vector<Chunk> chunks;
    for (std::size_t t = 0; t < texts_.training.size(); ++t) {
      const std::size_t count = texts_.training[t].rows.size();
      std::vector<Chunk> own;
      for (std::size_t begin = 0; begin < count; begin += length)
        own.push_back({t, begin, std::min(count, begin + length)});
      draws_.shuffle(own);
      own.resize(std::min(own.size(), size_of(options_.chunks_per_text)));
      chunks.insert(chunks.end(), own.begin(), own.end());
    }
    draws_.shuffle(chunks);
    return chunks;
  }

  std::vector<std::span<const Chunk>> batches_of(std::span<const Chunk> chunks) const {
    std::vector<std::span<const Chunk>> batches;
    const std::size_t step = size_of(options_.batch_chunks);
    for (std::size_t i = 0; i < chunks.size(); i += step)
      batches.push_back(chunks.subspan(i, std::min(step, chunks.size() - i)));
    return batches;
  }

  /// The tokens whose projections a chunk needs.
  Chunk surroundings(const Chunk& chunk) const {
    const auto reach = size_of(std::max(shape_.near_tokens, shape_.wide_tokens));
    return {chunk.text, chunk.begin - std::min(chunk.begin, reach),
            std::min(texts_.training[chunk.text].rows.size(), chunk.end + reach)};
  }

  /// Projects every row that the batch touches, once.
  void project_batch(std::span<const Chunk> batch) {
    for (const Chunk& chunk : batch) {
      const Chunk around = surroundings(chunk);
      for (std::size_t i = around.begin; i < around.end; ++i) {
        const std::size_t row = size_of(texts_.training[chunk.text].rows[i]);
        if (slots_[row] >= 0) continue;
        slots_[row] = static_cast<std::int32_t>(used_.size());
        used_.push_back(row);
      }
    }
    projected_.assign(used_.size() * width_, 0.0F);
    projected_gradient_.assign(used_.size() * width_, 0.0F);
    for (std::size_t slot = 0; slot < used_.size(); ++slot) {
      const std::span<const float> from = embedding(used_[slot]);
      const std::span<float> out = std::span(projected_).subspan(slot * width_, width_);
      for (std::size_t k = 0; k < from.size(); ++k)
        add_scaled(scale_ * from[k], projection_row(weights_, k), out);
    }
  }

  std::span<float> projection_row(ClassifierWeights& weights, std::size_t input) const {
    return std::span(weights.projection).subspan(input * width_, width_);
  }

  double run_batch(std::span<const Chunk> batch) {
    clear_gradient();
    project_batch(batch);
    double total_weight = 0;
    for (const Chunk& chunk : batch) {
      const std::span<const Region> labels = texts_.training[chunk.text].labels;
      for (std::size_t i = chunk.begin; i < chunk.end; ++i)
        total_weight += double(region_weights_[region_index(labels[i])]);
    }
    double loss = 0;
    for (const Chunk& chunk : batch) loss += run_chunk(chunk, static_cast<float>(total_weight));
    for (std::size_t slot = 0; slot < used_.size(); ++slot) {
      const std::span<const float> from = embedding(used_[slot]);
      const std::span<const float> own =
          std::span<const float>(projected_gradient_).subspan(slot * width_, width_);
      for (std::size_t k = 0; k < from.size(); ++k)
        add_scaled(scale_ * from[k], own, projection_row(gradient_, k));
      slots_[used_[slot]] = -1;
    }
    used_.clear();
    return loss;
  }

  /// Forward and backward through the tokens of one chunk; its share of the batch's mean loss.
  double run_chunk(const Chunk& chunk, float total_weight) {
    const LabelledText& text = texts_.training[chunk.text];
    const Chunk around = surroundings(chunk);
    around_.resize((around.end - around.begin) * width_);
    around_gradient_.assign(around_.size(), 0.0F);
    for (std::size_t i = around.begin; i < around.end; ++i) {
      const auto slot = size_of(slots_[size_of(text.rows[i])]);
      std::copy_n(projected_.begin() + static_cast<std::ptrdiff_t>(slot * width_), width_,
                  around_.begin() + static_cast<std::ptrdiff_t>((i - around.begin) * width_));
    }
    double loss = 0;
    for (std::size_t i = chunk.begin; i < chunk.end; ++i)
      loss += run_token(text, i, around.begin, total_weight);
    for (std::size_t i = around.begin; i < around.end; ++i) {
      const auto slot = size_of(slots_[size_of(text.rows[i])]);
      add_scaled(
          1.0F,
          std::span<const float>(around_gradient_).subspan((i - around.begin) * width_, width_),
          std::span(projected_gradient_).subspan(slot * width_, width_));
    }
    return loss;
  }

  double run_token(const LabelledText& text, std::size_t i, std::size_t first, float total_weight) {
    const std::size_t hidden_width = size_of(shape_.hidden_width);
    const std::span<const float> hidden_weights = weights_.hidden;
    x_.resize(shape_.inputs());
    classifier_inputs(shape_, text.view(), i, first, around_, x_);
    hidden_ = weights_.hidden_bias;
    for (std::size_t k = 0; k < x_.size(); ++k)
      add_scaled(x_[k], hidden_weights.subspan(k * hidden_width, hidden_width), hidden_);
    RegionScores scores;
    std::copy(weights_.output_bias.begin(), weights_.output_bias.end(), scores.begin());
    for (std::size_t k = 0; k < hidden_width; ++k) {
      hidden_[k] = std::max(0.0F, hidden_[k]);
      for (std::size_t r = 0; r < kRegionCount; ++r)
        scores[r] += hidden_[k] * weights_.output[k * kRegionCount + r];
    }
    const std::size_t label = region_index(text.labels[i]);
    const float weight = region_weights_[label] / total_weight;
    const double loss = double(weight) * to_gradient(label, weight, scores);
    backward(scores, i, first, text.rows.size());
    return loss;
  }

  /// Scores become the loss's gradient with respect to them; returns the cross entropy.
  static double to_gradient(std::size_t label, float weight, RegionScores& scores) {
    const float highest = *std::max_element(scores.begin(), scores.end());
    float sum = 0;
    const float own = scores[label] - highest;
    for (float& score : scores) {
      score = std::exp(score - highest);
      sum += score;
    }
    for (float& score : scores) score *= weight / sum;
    scores[label] -= weight;
    return std::log(double(sum)) - double(own);
  }

  void backward(const RegionScores& slope, std::size_t i, std::size_t first, std::size_t count) {
    const std::size_t hidden_width = size_of(shape_.hidden_width);
    hidden_slope_.assign(hidden_width, 0.0F);
    for (std::size_t r = 0; r < kRegionCount; ++r) gradient_.output_bias[r] += slope[r];
    for (std::size_t k = 0; k < hidden_width; ++k) {
      if (hidden_[k] <= 0.0F) continue;
      for (std::size_t r = 0; r < kRegionCount; ++r) {
        gradient_.output[k * kRegionCount + r] += hidden_[k] * slope[r];
        hidden_slope_[k] += slope[r] * weights_.output[k * kRegionCount + r];
      }
    }
    add_scaled(1.0F, hidden_slope_, gradient_.hidden_bias);
    const std::span<const float> hidden_weights = weights_.hidden;
    const std::span<float> hidden_gradient = gradient_.hidden;
    for (std::size_t k = 0; k < x_.size(); ++k) {
      const std::size_t at = k * hidden_width;
      add_scaled(x_[k], hidden_slope_, hidden_gradient.subspan(at, hidden_width));
      x_[k] = dot(hidden_weights.subspan(at, hidden_width), hidden_slope_);
    }
    for (std::size_t w = 0; w < ClassifierShape::kWindows; ++w) {
      const ClassifierWindow window = classifier_window(shape_, w, i, count);
      if (window.begin >= window.end) continue;
      const float share = 1.0F / static_cast<float>(window.end - window.begin);
      for (std::size_t j = window.begin; j < window.end; ++j) {
        add_scaled(share, std::span<const float>(x_).subspan(w * width_, width_),
                   std::span(around_gradient_).subspan((j - first) * width_, width_));
      }
    }
  }

  void clear_gradient() {
    for (std::vector<float>* part :
         {&gradient_.projection, &gradient_.hidden, &gradient_.hidden_bias, &gradient_.output,
          &gradient_.output_bias}) {
      std::fill(part->begin(), part->end(), 0.0F);
    }
  }

  void apply(double rate) {
    const std::array<std::span<const float>, 5> gradients = {
        gradient_.projection, gradient_.hidden, gradient_.hidden_bias, gradient_.output,
        gradient_.output_bias};
    for (std::size_t a = 0; a < adam_.size(); ++a)
      adam_[a].step(gradients[a], time_, rate, options_.weight_decay);
  }

  const TrainingTexts texts_;
  const TrainingOptions options_;
  const ClassifierShape shape_;
  const std::size_t width_;
  SeededRandom draws_;
  float scale_ = 1;
  ClassifierWeights weights_, gradient_;
  std::vector<AdamArray> adam_;
  std::array<float, kRegionCount> region_weights_{};
  int time_ = 0;
  std::vector<std::int32_t> slots_;  // [rows]: where the batch keeps the row, -1 for nowhere
  std::vector<std::size_t> used_;    // [slots]: its row
  std::vector<float> projected_, projected_gradient_;
  std::vector<float> around_, around_gradient_;
  std::vector<float> x_, hidden_, hidden_slope_;
};

Status check_text(const LabelledText& text, std::size_t rows) {
  const bool even =
      text.rows.size() == text.places.size() && text.rows.size() == text.labels.size();
  if (!even) {
    return make_status(StatusCode::kInvalidArgument,
                       "a text of {} tokens has {} places and {} labels", text.rows.size(),
                       text.places.size(), text.labels.size());
  }
  for (std::size_t i = 0; i < text.rows.size(); ++i) {
    if (text.rows[i] < 0 || size_of(text.rows[i]) >= rows || text.places[i] < 0) {
      return make_status(StatusCode::kInvalidArgument,
                         "token {} names embedding {} of {} at place {}", i, text.rows[i], rows,
                         text.places[i]);
    }
  }
  return Status();
}

Status check(const TrainingTexts& texts, const TrainingOptions& options) {
  const auto invalid = [](const char* what) { return Status(StatusCode::kInvalidArgument, what); };
  const bool counts = options.epochs > 0 && options.patience > 0 && options.chunk_tokens > 0 &&
                      options.batch_chunks > 0 && options.chunks_per_text > 0;
  if (!options.shape.is_sane() || !counts || !(options.learning_rate > 0)) {
    return invalid("the options of the training are out of range");
  }
  const std::size_t width = size_of(options.shape.embedding_width);
  if (texts.embeddings.size() % width != 0) return invalid("the embeddings end within a row");
  std::size_t tokens = 0, held_out = 0;
  for (const LabelledText& text : texts.training) {
    MEMDECAY_RETURN_IF_ERROR(check_text(text, texts.embeddings.size() / width));
    tokens += text.rows.size();
  }
  for (const LabelledText& text : texts.held_out) {
    MEMDECAY_RETURN_IF_ERROR(check_text(text, texts.embeddings.size() / width));
    held_out += text.rows.size();
  }
  if (tokens == 0) return invalid("there is no text to learn from");
  if (held_out == 0) return invalid("no text is held out: more tasks are needed");
  return Status();
}

}  // namespace

Result<TrainedClassifier> train_classifier(
    const TrainingTexts& texts, const TrainingOptions& options,
    const std::function<void(const EpochReport&)>& on_epoch) {
  MEMDECAY_RETURN_IF_ERROR(check(texts, options));
  return Trainer(texts, options).run(on_epoch);
}

std::vector<float> project_rows(const RegionClassifier& classifier,
                                std::span<const float> embeddings) {
  const std::size_t length = size_of(classifier.shape().embedding_width);
  const std::size_t width = size_of(classifier.shape().projected_width);
  const std::size_t rows = embeddings.size() / length;
  std::vector<float> projected(rows * width);
  for (std::size_t row = 0; row < rows; ++row) {
    classifier.project(embeddings.subspan(row * length, length),
                       std::span(projected).subspan(row * width, width));
  }
  return projected;
}

RegionConfusion measure_classifier(const RegionClassifier& classifier,
                                   std::span<const float> embeddings,
                                   std::span<const LabelledText> texts) {
  const std::vector<float> projected = project_rows(classifier, embeddings);
  RegionConfusion confusion;
  for (const LabelledText& text : texts)
    confusion.add(text.labels, classifier.classify(text.view(), projected));
  return confusion;
}

}  // namespace memdecay
