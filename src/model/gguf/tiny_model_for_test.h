// Small complete models of each architecture, as GgufBuilders: for tests and the fuzzer's seeds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/gguf_builder_for_test.h"

namespace memdecay {

/// Two layers of width 32, 4 query heads over 2 kv heads of 8, feed-forward 64, 40 tokens.
inline GgufBuilder tiny_model(std::string_view architecture = "llama") {
  const std::string prefix = std::string(architecture) + ".";
  constexpr std::uint32_t kWidth = 32, kInner = 64, kHeads = 4, kKvHeads = 2, kHead = 8;
  constexpr std::uint32_t kLayers = 2, kTokens = 40;
  const bool is_gemma3 = architecture == "gemma3";
  GgufBuilder builder;
  builder.add("general.architecture", architecture)
      .add("general.name", "Tiny")
      .add(prefix + "block_count", kLayers)
      .add(prefix + "context_length", std::uint32_t{128})
      .add(prefix + "embedding_length", kWidth)
      .add(prefix + "feed_forward_length", kInner)
      .add(prefix + "attention.head_count", kHeads)
      .add(prefix + "attention.head_count_kv", kKvHeads)
      .add(prefix + "attention.layer_norm_rms_epsilon", 1e-5F)
      .add(prefix + "rope.freq_base", 500000.0F);
  if (is_gemma3 || architecture == "qwen3")
    builder.add(prefix + "attention.key_length", kHead)
        .add(prefix + "attention.value_length", kHead);
  if (is_gemma3) builder.add(prefix + "attention.sliding_window", std::uint32_t{16});
  std::vector<std::string> tokens;
  for (std::uint32_t i = 0; i < kTokens; ++i) tokens.push_back("t" + std::to_string(i));
  builder.add("tokenizer.ggml.model", "gpt2").add_strings("tokenizer.ggml.tokens", tokens);

  builder.add_tensor("token_embd.weight", {kWidth, kTokens}, WeightType::kQ8_0)
      .add_tensor("output_norm.weight", {kWidth});
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    builder.add_tensor(block + "attn_norm.weight", {kWidth})
        .add_tensor(block + "attn_q.weight", {kWidth, kHeads * kHead}, WeightType::kQ4_0)
        .add_tensor(block + "attn_k.weight", {kWidth, kKvHeads * kHead}, WeightType::kQ4_0)
        .add_tensor(block + "attn_v.weight", {kWidth, kKvHeads * kHead}, WeightType::kQ8_0)
        .add_tensor(block + "attn_output.weight", {kHeads * kHead, kWidth}, WeightType::kQ4_0)
        .add_tensor(block + "ffn_norm.weight", {kWidth})
        .add_tensor(block + "ffn_gate.weight", {kWidth, kInner}, WeightType::kQ4_0)
        .add_tensor(block + "ffn_up.weight", {kWidth, kInner}, WeightType::kQ4_0)
        .add_tensor(block + "ffn_down.weight", {kInner, kWidth}, WeightType::kQ5_0);
    if (architecture == "qwen2")
      builder.add_tensor(block + "attn_q.bias", {kHeads * kHead})
          .add_tensor(block + "attn_k.bias", {kKvHeads * kHead})
          .add_tensor(block + "attn_v.bias", {kKvHeads * kHead});
    if (is_gemma3 || architecture == "qwen3")
      builder.add_tensor(block + "attn_q_norm.weight", {kHead})
          .add_tensor(block + "attn_k_norm.weight", {kHead});
    if (is_gemma3)
      builder.add_tensor(block + "post_attention_norm.weight", {kWidth})
          .add_tensor(block + "post_ffw_norm.weight", {kWidth});
  }
  return builder;
}

}  // namespace memdecay
