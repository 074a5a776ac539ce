// A small complete model with random weights, as the bytes of a GGUF file: for tests of the forward
// pass.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "model/gguf/gguf_builder_for_test.h"
#include "model/gguf/gguf_file.h"
#include "quant/half.h"

namespace memdecay {

struct RandomModelShape {
  std::uint32_t layers = 3, width = 64, inner = 96, heads = 6, kv_heads = 2, head_dim = 64,
                vocab = 50;
  std::uint32_t window = 48;          ///< gemma3 only
  std::uint32_t rope_dimensions = 0;  ///< of a head that turn; 0: all
  WeightType matrix_type = WeightType::kQ8_0;
  std::uint32_t context = 4096;
  /// The vocabulary, in the byte alphabet; empty: t0, t1, ... Those after it are t<number> too.
  std::vector<std::string> pieces;
  int eos = -1;  ///< the end token; -1: the model names none
};

/// Tensor directory and metadata, data zeroed.
inline std::vector<std::byte> zero_model(std::string_view architecture,
                                         const RandomModelShape& shape) {
  const std::string prefix = std::string(architecture) + ".";
  const bool gemma = architecture == "gemma3";
  const bool qk_norm = gemma || architecture == "qwen3";
  GgufBuilder builder;
  builder.add("general.architecture", architecture)
      .add(prefix + "block_count", shape.layers)
      .add(prefix + "context_length", shape.context)
      .add(prefix + "embedding_length", shape.width)
      .add(prefix + "feed_forward_length", shape.inner)
      .add(prefix + "attention.head_count", shape.heads)
      .add(prefix + "attention.head_count_kv", shape.kv_heads)
      .add(prefix + "attention.key_length", shape.head_dim)
      .add(prefix + "attention.value_length", shape.head_dim)
      .add(prefix + "attention.layer_norm_rms_epsilon", 1e-5F)
      .add(prefix + "rope.freq_base", 10000.0F);
  if (gemma) builder.add(prefix + "attention.sliding_window", shape.window);
  if (shape.rope_dimensions > 0)
    builder.add(prefix + "rope.dimension_count", shape.rope_dimensions);
  std::vector<std::string> tokens = shape.pieces;
  for (std::size_t i = tokens.size(); i < shape.vocab; ++i)
    tokens.push_back("t" + std::to_string(i));
  builder.add("tokenizer.ggml.model", "gpt2")
      .add_strings("tokenizer.ggml.tokens", tokens)
      .add_strings("tokenizer.ggml.merges", {});
  if (shape.eos >= 0)
    builder.add("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(shape.eos));
  const std::uint32_t q_width = shape.heads * shape.head_dim,
                      kv_width = shape.kv_heads * shape.head_dim;
  builder.add_tensor("token_embd.weight", {shape.width, shape.vocab}, WeightType::kQ8_0)
      .add_tensor("output_norm.weight", {shape.width});
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    builder.add_tensor(block + "attn_norm.weight", {shape.width})
        .add_tensor(block + "attn_q.weight", {shape.width, q_width}, shape.matrix_type)
        .add_tensor(block + "attn_k.weight", {shape.width, kv_width}, shape.matrix_type)
        .add_tensor(block + "attn_v.weight", {shape.width, kv_width}, shape.matrix_type)
        .add_tensor(block + "attn_output.weight", {q_width, shape.width}, shape.matrix_type)
        .add_tensor(block + "ffn_norm.weight", {shape.width})
        .add_tensor(block + "ffn_gate.weight", {shape.width, shape.inner}, shape.matrix_type)
        .add_tensor(block + "ffn_up.weight", {shape.width, shape.inner}, shape.matrix_type)
        .add_tensor(block + "ffn_down.weight", {shape.inner, shape.width}, shape.matrix_type);
    if (architecture == "qwen2") {
      builder.add_tensor(block + "attn_q.bias", {q_width})
          .add_tensor(block + "attn_k.bias", {kv_width})
          .add_tensor(block + "attn_v.bias", {kv_width});
    }
    if (qk_norm) {
      builder.add_tensor(block + "attn_q_norm.weight", {shape.head_dim})
          .add_tensor(block + "attn_k_norm.weight", {shape.head_dim});
    }
    if (gemma) {
      builder.add_tensor(block + "post_attention_norm.weight", {shape.width})
          .add_tensor(block + "post_ffw_norm.weight", {shape.width});
    }
  }
  return builder.build();
}

/// Random weights: norms around 1, biases and F32 values around 0, Q8_0 and Q4_0 blocks with scales
/// that keep activations of order 1.
inline std::vector<std::byte> random_model(std::string_view architecture,
                                           const RandomModelShape& shape, std::uint32_t seed) {
  std::vector<std::byte> bytes = zero_model(architecture, shape);
  Result<GgufFile> file = GgufFile::from_bytes(bytes, "random model");
  MEMDECAY_CHECK(file.ok());
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < file->tensor_count(); ++i) {
    const GgufTensor tensor = file->tensor(i);
    std::byte* data = bytes.data() + tensor.file_offset;
    if (tensor.type == WeightType::kF32) {
      const bool is_norm = tensor.name.find("norm") != std::string_view::npos;
      for (std::int64_t v = 0; v < tensor.values(); ++v) {
        const float value = is_norm ? 1.0F + 0.2F * normal(random) : 0.3F * normal(random);
        std::memcpy(data + v * 4, &value, sizeof value);
      }
      continue;
    }
    const WeightTypeTraits& traits = weight_type_traits(*tensor.type);
    const float levels = *tensor.type == WeightType::kQ8_0 ? 127.0F : 7.0F;
    const std::uint16_t scale =
        float_to_half(1.7F / levels / std::sqrt(static_cast<float>(tensor.row_values())));
    for (std::size_t at = 0; at < tensor.bytes.size(); at += traits.block_bytes) {
      for (std::size_t b = 2; b < traits.block_bytes; ++b)
        data[at + b] = static_cast<std::byte>(random());
      std::memcpy(data + at, &scale, sizeof scale);
    }
  }
  return bytes;
}

}  // namespace memdecay
