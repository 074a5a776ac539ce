// The forward pass in its plainest form: double precision, one sequence, keys and values in plain
// vectors, no pages, no threads, no kernels. The oracle of transformer_test.cc. It will never be
// fast, batched or incremental.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/id.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/model_config.h"
#include "model/gguf/model_tensors.h"

namespace memdecay {

class ReferenceForward {
 public:
  using Vector = std::vector<double>;
  /// What the attention of one layer reads for the query at one position: queries of all heads, and
  /// keys and values of all positions.
  struct AttentionInput {
    int layer;
    std::size_t position;
    const Vector& q;
    const std::vector<Vector>& keys;
    const std::vector<Vector>& values;
  };
  struct Tokens {
    std::size_t begin, end;
  };
  /// Called before each attention, where set.
  std::function<void(const AttentionInput&)> on_attention;
  /// Where the query at one position sees the key of another, or its own; empty: the key is gone.
  /// Of layers without a window; not set: everything is where it was.
  std::function<std::optional<Position>(std::size_t query, std::size_t key)> place;

  ReferenceForward(const GgufFile& file, const ModelConfig& config)
      : config_(config), tensors_(ModelTensors::find(file, config).value()) {}

  /// Logits after each token: [tokens][vocab].
  std::vector<Vector> logits(std::span<const TokenId> tokens) {
    std::vector<Vector> x;
    const Vector table = values(tensors_.token_embedding());
    const auto width = static_cast<std::size_t>(config_.embedding_length);
    for (const TokenId token : tokens) {
      const auto begin =
          table.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * width);
      x.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(width));
      for (double& value : x.back()) value *= static_cast<double>(config_.embedding_scale);
    }
    for (int layer = 0; layer < config_.layers; ++layer) run_layer(layer, x);
    std::vector<Vector> result;
    const GgufTensor& head =
        config_.has_tied_output ? tensors_.token_embedding() : tensors_.output();
    for (const Vector& row : x) result.push_back(multiply(head, norm(row, tensors_.output_norm())));
    return result;
  }

  /// Output of all heads, as if the tokens of `without` were not there; 0 where nothing is left.
  Vector attend(const AttentionInput& input, Tokens without = {0, 0}) const {
    const auto dim = static_cast<std::size_t>(config_.head_dim);
    const std::size_t group = static_cast<std::size_t>(config_.heads / config_.kv_heads);
    const std::size_t window = config_.is_sliding(input.layer)
                                   ? static_cast<std::size_t>(config_.sliding_window)
                                   : input.keys.size();
    const std::size_t first = input.position + 1 > window ? input.position + 1 - window : 0;
    Vector out(input.q.size());
    for (std::size_t head = 0; head < input.q.size() / dim; ++head) {
      const std::size_t kv = head / group * dim;
      Vector scores;
      double max = -1e300, sum = 0;
      for (std::size_t t = first; t <= input.position; ++t) {
        double score = 0;
        for (std::size_t i = 0; i < dim; ++i)
          score += input.q[head * dim + i] * input.keys[t][kv + i];
        scores.push_back(score * static_cast<double>(config_.query_scale));
        max = std::max(max, scores.back());
      }
      for (std::size_t t = first; t <= input.position; ++t) {
        const bool gone = (t >= without.begin && t < without.end) ||
                          (moves(input.layer) && !place(input.position, t).has_value());
        sum += scores[t - first] = gone ? 0.0 : std::exp(scores[t - first] - max);
      }
      for (std::size_t t = first; t <= input.position && sum > 0; ++t) {
        for (std::size_t i = 0; i < dim; ++i)
          out[head * dim + i] += scores[t - first] / sum * input.values[t][kv + i];
      }
    }
    return out;
  }

 private:
  static Vector values(const GgufTensor& tensor) {
    std::vector<float> floats(static_cast<std::size_t>(tensor.values()));
    dequantize_weights(*tensor.type, tensor.bytes, floats);
    return Vector(floats.begin(), floats.end());
  }

  const Vector& cached(const GgufTensor& tensor) {
    Vector& entry = cache_[std::string(tensor.name)];
    if (entry.empty()) entry = values(tensor);
    return entry;
  }

  Vector multiply(const GgufTensor& tensor, const Vector& x) {
    const Vector& w = cached(tensor);
    Vector out(static_cast<std::size_t>(tensor.rows()));
    for (std::size_t row = 0; row < out.size(); ++row) {
      for (std::size_t i = 0; i < x.size(); ++i) out[row] += w[row * x.size() + i] * x[i];
    }
    return out;
  }

  Vector norm(const Vector& x, const GgufTensor& weight) {
    const Vector& w = cached(weight);
    double square = 0;
    for (const double value : x) square += value * value;
    const double scale = 1.0 / std::sqrt(square / static_cast<double>(x.size()) +
                                         static_cast<double>(config_.rms_epsilon));
    Vector out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] * scale * w[i];
    return out;
  }

  void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  bool moves(int layer) const { return place && !config_.is_sliding(layer); }

  void norm_heads(Vector& x, const GgufTensor& head_norm) {
    const auto dim = static_cast<std::ptrdiff_t>(config_.head_dim);
    for (auto head = x.begin(); config_.has_qk_norm && head != x.end(); head += dim) {
      const Vector part = norm(Vector(head, head + dim), head_norm);
      std::copy(part.begin(), part.end(), head);
    }
  }

  /// Each head turned by the position.
  Vector rotated(const Vector& heads, int layer, Position position) const {
    Vector x = heads;
    const auto dim = static_cast<std::size_t>(config_.head_dim);
    const RopeParameters& rope = config_.rope_of(layer);
    const Vector frequencies = rope_frequencies(rope, tensors_.rope_divisors());
    for (std::size_t head = 0; head < x.size() / dim; ++head) {
      double* const part = x.data() + head * dim;
      for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
        const bool halves = rope.order == RopeOrder::kHalves;
        double& a = part[halves ? pair : 2 * pair];
        double& b = part[halves ? pair + frequencies.size() : 2 * pair + 1];
        const double angle = frequencies[pair] * position;
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
    }
    return x;
  }

  /// Keys as the query at one position sees them.
  std::vector<Vector> seen_keys(const std::vector<Vector>& k, int layer, std::size_t query) const {
    std::vector<Vector> seen = k;
    for (std::size_t key = 0; key < k.size(); ++key)
      seen[key] = rotated(k[key], layer, seen_at(layer, query, key));
    return seen;
  }
  Position seen_at(int layer, std::size_t query, std::size_t key) const {
    const auto own = static_cast<Position>(key);
    return moves(layer) && key <= query ? place(query, key).value_or(own) : own;
  }

  double activate(double x) const {
    if (config_.activation == GateActivation::kSilu) return x / (1 + std::exp(-x));
    return 0.5 * x *
           (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  }

  void run_layer(int layer, std::vector<Vector>& x) {
    const LayerTensors t = tensors_.layer(layer);
    std::vector<Vector> q, k, v;
    for (std::size_t position = 0; position < x.size(); ++position) {
      const Vector normed = norm(x[position], t.attention_norm);
      q.push_back(multiply(t.query, normed));
      k.push_back(multiply(t.key, normed));
      v.push_back(multiply(t.value, normed));
      if (config_.has_qkv_bias) {
        add(q.back(), cached(t.query_bias));
        add(k.back(), cached(t.key_bias));
        add(v.back(), cached(t.value_bias));
      }
      norm_heads(q.back(), t.query_norm);
      norm_heads(k.back(), t.key_norm);
    }
    std::vector<Vector> keys =
        seen_keys(k, layer, 0);  // while nothing moves, all queries see these
    for (std::size_t position = 0; position < x.size(); ++position) {
      if (moves(layer)) keys = seen_keys(k, layer, position);
      const Vector query = rotated(q[position], layer, seen_at(layer, position, position));
      const AttentionInput input{layer, position, query, keys, v};
      if (on_attention) on_attention(input);
      Vector out = multiply(t.attention_output, attend(input));
      add(x[position], config_.has_post_norms ? norm(out, t.post_attention_norm) : out);
      const Vector normed = norm(x[position], t.feed_forward_norm);
      Vector gate = multiply(t.gate, normed);
      const Vector up = multiply(t.up, normed);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = activate(gate[i]) * up[i];
      out = multiply(t.down, gate);
      add(x[position], config_.has_post_norms ? norm(out, t.post_feed_forward_norm) : out);
    }
  }

  const ModelConfig& config_;
  ModelTensors tensors_;
  std::map<std::string, Vector> cache_;
};

}  // namespace memdecay
