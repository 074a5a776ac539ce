// The forward pass in its plainest form: double precision, one sequence, keys and values in plain
// vectors, no pages, no threads, no kernels. The oracle of transformer_test.cc. It will never be
// fast, batched or incremental.
#pragma once

#include <cmath>
#include <functional>
#include <map>
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
        const bool gone = t >= without.begin && t < without.end;
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

  /// Per head: optional norm, then rotation by the position.
  void prepare_heads(Vector& x, const GgufTensor& head_norm, int layer, Position position) {
    const auto dim = static_cast<std::size_t>(config_.head_dim);
    const RopeParameters& rope = config_.rope_of(layer);
    const Vector frequencies = rope_frequencies(rope, tensors_.rope_divisors());
    for (std::size_t head = 0; head < x.size() / dim; ++head) {
      Vector part(x.begin() + static_cast<std::ptrdiff_t>(head * dim),
                  x.begin() + static_cast<std::ptrdiff_t>((head + 1) * dim));
      if (config_.has_qk_norm) part = norm(part, head_norm);
      for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
        const bool halves = rope.order == RopeOrder::kHalves;
        double& a = part[halves ? pair : 2 * pair];
        double& b = part[halves ? pair + frequencies.size() : 2 * pair + 1];
        const double angle = frequencies[pair] * position;
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
      std::copy(part.begin(), part.end(), x.begin() + static_cast<std::ptrdiff_t>(head * dim));
    }
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
      prepare_heads(q.back(), t.query_norm, layer, static_cast<Position>(position));
      prepare_heads(k.back(), t.key_norm, layer, static_cast<Position>(position));
    }
    for (std::size_t position = 0; position < x.size(); ++position) {
      const AttentionInput input{layer, position, q[position], k, v};
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
