#include "model/gguf/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/gguf/tiny_model_for_test.h"

namespace memdecay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Result<ModelConfig> read(GgufBuilder builder) {
  const auto bytes = builder.build();
  MEMDECAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::from_bytes(bytes, "m"));
  return ModelConfig::read(file);
}

std::string failure_of(GgufBuilder builder) {
  const auto config = read(std::move(builder));
  return config.ok() ? "ok" : config.status().message();
}

template <typename T>
std::string failure_with(const std::string& key, T value) {
  return failure_of(tiny_model().add(key, value));
}

TEST(ModelConfig, ReadsLlama) {
  const auto config = read(tiny_model()).value();
  EXPECT_EQ(config.architecture, ModelArchitecture::kLlama);
  EXPECT_EQ(config.name, "Tiny");
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.embedding_length, 32);
  EXPECT_EQ(config.feed_forward_length, 64);
  EXPECT_EQ(config.heads, 4);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, 40);
  EXPECT_EQ(config.context_length, 128);
  EXPECT_EQ(config.rms_epsilon, 1e-5F);
  EXPECT_EQ(config.rope.dimensions, 8);
  EXPECT_EQ(config.rope.order, RopeOrder::kInterleaved);
  EXPECT_EQ(config.rope.theta, 500000);
  EXPECT_EQ(config.rope.scaling, RopeScaling::kNone);
  EXPECT_EQ(config.sliding_window, 0);
  EXPECT_FALSE(config.is_sliding(1));
  EXPECT_FLOAT_EQ(config.query_scale, 1 / std::sqrt(8.0F));
  EXPECT_EQ(config.embedding_scale, 1);
  EXPECT_EQ(config.final_logit_softcap, 0);
  EXPECT_EQ(config.activation, GateActivation::kSilu);
  EXPECT_FALSE(config.has_qk_norm || config.has_qkv_bias || config.has_post_norms);
  EXPECT_TRUE(config.has_tied_output);
}

TEST(ModelConfig, ReadsQwens) {
  const auto second = read(tiny_model("qwen2")).value();
  EXPECT_TRUE(second.has_qkv_bias);
  EXPECT_FALSE(second.has_qk_norm);
  EXPECT_EQ(second.rope.order, RopeOrder::kHalves);
  const auto third = read(tiny_model("qwen3").add_tensor("output.weight", {32, 40})).value();
  EXPECT_FALSE(third.has_qkv_bias || third.has_tied_output);
  EXPECT_TRUE(third.has_qk_norm);
  EXPECT_EQ(architecture_name(third.architecture), "qwen3");
}

TEST(ModelConfig, ReadsGemma3) {
  GgufBuilder builder = tiny_model("gemma3");
  builder.add("gemma3.block_count", std::uint32_t{13})
      .add("gemma3.rope.scaling.type", "linear")
      .add("gemma3.rope.scaling.factor", 8.0F)
      .add("gemma3.final_logit_softcapping", 30.0F);
  const auto config = read(builder).value();
  EXPECT_EQ(config.sliding_window, 16);
  for (int layer = 0; layer < 13; ++layer)
    EXPECT_EQ(config.is_sliding(layer), layer != 5 && layer != 11) << layer;
  EXPECT_EQ(config.rope_of(5).theta, 500000);
  EXPECT_EQ(config.rope_of(5).scaling, RopeScaling::kLinear);
  EXPECT_EQ(config.rope_of(5).factor, 8);
  EXPECT_EQ(config.rope_of(0).theta, 10000);
  EXPECT_EQ(config.rope_of(0).scaling, RopeScaling::kNone);
  EXPECT_FLOAT_EQ(config.embedding_scale, std::sqrt(32.0F));
  EXPECT_FLOAT_EQ(config.query_scale, 1 / std::sqrt(8.0F));
  EXPECT_EQ(config.final_logit_softcap, 30);
  EXPECT_EQ(config.activation, GateActivation::kGeluTanh);
  EXPECT_TRUE(config.has_qk_norm && config.has_post_norms && config.has_tied_output);
}

TEST(ModelConfig, ReadsGemma3PatternsAndItsLargestModel) {
  const auto every_second =
      read(tiny_model("gemma3").add("gemma3.attention.sliding_window_pattern", std::uint32_t{2}))
          .value();
  EXPECT_TRUE(every_second.is_sliding(0));
  EXPECT_FALSE(every_second.is_sliding(1));
  const auto listed = read(tiny_model("gemma3").add_array<std::uint8_t>("x", {}).add_raw(
                               "gemma3.attention.sliding_window_pattern", 9,
                               GgufBuilder::array_head(7, 2) + std::string("\0\1", 2)))
                          .value();
  EXPECT_FALSE(listed.is_sliding(0));
  EXPECT_TRUE(listed.is_sliding(1));
  // The key norm is 16 wide, the embedding's share of a head 32 / 4 = 8.
  const auto largest = read(tiny_model("gemma3")
                                .add("gemma3.block_count", std::uint32_t{62})
                                .add("gemma3.attention.key_length", std::uint32_t{16})
                                .add("gemma3.attention.value_length", std::uint32_t{16}))
                           .value();
  EXPECT_EQ(largest.head_dim, 16);
  EXPECT_FLOAT_EQ(largest.query_scale, 1 / std::sqrt(8.0F));
}

TEST(ModelConfig, ReadsMistralsWindow) {
  const auto config =
      read(tiny_model().add("llama.attention.sliding_window", std::uint32_t{64})).value();
  EXPECT_EQ(config.sliding_window, 64);
  EXPECT_TRUE(config.is_sliding(0) && config.is_sliding(1));
  EXPECT_EQ(config.rope_of(0).theta, 500000);
  // A window as long as the context hides nothing.
  EXPECT_EQ(read(tiny_model().add("llama.attention.sliding_window", std::uint32_t{128}))
                .value()
                .sliding_window,
            0);
}

TEST(ModelConfig, ReadsRopeScaling) {
  const auto yarn = read(tiny_model("qwen2")
                             .add("qwen2.rope.scaling.type", "yarn")
                             .add("qwen2.rope.scaling.factor", 4.0F)
                             .add("qwen2.rope.scaling.original_context_length", std::uint32_t{32}))
                        .value();
  EXPECT_EQ(yarn.rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(yarn.rope.original_context_length, 32);
  EXPECT_EQ(yarn.rope.yarn_beta_fast, 32);
  const auto old = read(tiny_model().add("llama.rope.scale_linear", 2.0F)).value();
  EXPECT_EQ(old.rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(old.rope.factor, 2);
  EXPECT_THAT(failure_with("llama.rope.scaling.type", "longrope"),
              HasSubstr("RoPE scaling of type \"longrope\" is not supported"));
  EXPECT_THAT(failure_of(tiny_model("qwen2").add("qwen2.rope.scaling.type", "yarn")),
              HasSubstr("qwen2.rope.scaling.original_context_length is missing"));
  EXPECT_THAT(failure_with("llama.rope.scaling.factor", 1e-9F), HasSubstr("too small"));
}

TEST(ModelConfig, AcceptsEqualValuesPerLayerAndRefusesOthers) {
  const auto with = [](const std::vector<std::uint32_t>& kv_heads) {
    return tiny_model().add_array("llama.attention.head_count_kv", kv_heads);
  };
  EXPECT_EQ(read(with({2, 2})).value().kv_heads, 2);
  EXPECT_EQ(failure_of(with({2, 4})),
            "m: llama.attention.head_count_kv differs between layers, which this build does not "
            "support");
  EXPECT_EQ(failure_of(with({2, 2, 2})),
            "m: llama.attention.head_count_kv has 3 values for 2 layers");
  EXPECT_EQ(failure_of(with({0, 0})),
            "m: llama.attention.head_count_kv is 0, not between 1 and 1024");
}

TEST(ModelConfig, RefusesOtherArchitectures) {
  EXPECT_EQ(failure_with("general.architecture", "mamba"),
            "m: the architecture \"mamba\" is not supported; this build reads llama, qwen2, qwen3 "
            "and gemma3");
  EXPECT_EQ(failure_of(tiny_model().remove("general.architecture")),
            "m: the key general.architecture is missing");
}

TEST(ModelConfig, RefusesUnknownComputations) {
  EXPECT_EQ(failure_with("llama.expert_count", std::uint32_t{8}),
            "m: the model uses a mixture of experts (llama.expert_count = 8), which this build "
            "does not support");
  EXPECT_EQ(failure_with("llama.expert_count", std::uint32_t{0}), "ok");
  EXPECT_THAT(failure_with("llama.attn_logit_softcapping", 50.0F), HasSubstr("soft-capped"));
  EXPECT_THAT(failure_with("llama.attention.causal", false), HasSubstr("later tokens"));
  EXPECT_EQ(failure_with("llama.attention.causal", true), "ok");
  EXPECT_THAT(failure_with("llama.attention.scale", 0.5F), HasSubstr("attention scale"));
  EXPECT_EQ(failure_with("llama.logit_scale", 0.0F), "ok");
  EXPECT_THAT(
      failure_of(tiny_model("qwen2").add("qwen2.attention.sliding_window", std::uint32_t{16})),
      HasSubstr("a sliding window of 16 is not supported for qwen2"));
}

TEST(ModelConfig, RefusesSizesThatCannotBe) {
  const auto with = [](const char* key, std::uint32_t value) { return failure_with(key, value); };
  EXPECT_EQ(with("llama.block_count", 0), "m: llama.block_count is 0, not between 1 and 1024");
  EXPECT_THAT(with("llama.block_count", 5000), HasSubstr("not between"));
  EXPECT_THAT(with("llama.embedding_length", 0), HasSubstr("not between"));
  EXPECT_THAT(with("llama.feed_forward_length", 0), HasSubstr("not between"));
  EXPECT_THAT(with("llama.context_length", 0), HasSubstr("not between"));
  EXPECT_THAT(with("llama.attention.head_count", 0), HasSubstr("not between"));
  EXPECT_EQ(with("llama.attention.head_count_kv", 3),
            "m: 4 query heads do not divide among 3 key-value heads");
  EXPECT_EQ(with("llama.attention.head_count", 6),
            "m: an embedding of 32 values does not divide among 6 heads");
  EXPECT_THAT(with("llama.attention.key_length", 7), HasSubstr("heads of 7 values"));
  EXPECT_THAT(with("llama.attention.key_length", 1000), HasSubstr("not between"));
  EXPECT_THAT(with("llama.attention.value_length", 16), HasSubstr("keys of 8 and values of 16"));
  EXPECT_THAT(with("llama.rope.dimension_count", 3), HasSubstr("is odd"));
  EXPECT_THAT(with("llama.rope.dimension_count", 10), HasSubstr("not between 2 and 8"));
  EXPECT_THAT(with("llama.vocab_size", 41), HasSubstr("has 40 rows"));
  EXPECT_THAT(failure_of(tiny_model().add_strings("tokenizer.ggml.tokens", {"a"})),
              HasSubstr("lists 1 tokens, but token_embd.weight has 40 rows"));
  EXPECT_THAT(failure_of(tiny_model().remove_tensor("token_embd.weight")),
              HasSubstr("token_embd.weight is missing"));
  EXPECT_EQ(failure_of(tiny_model().remove("llama.block_count")),
            "m: the key llama.block_count is missing");
}

TEST(ModelConfig, RefusesNumbersThatCannotBe) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(failure_with("llama.rope.freq_base", nan), HasSubstr("is nan, not between"));
  EXPECT_THAT(failure_with("llama.rope.freq_base", 0.0F), HasSubstr("not between"));
  EXPECT_THAT(failure_with("llama.attention.layer_norm_rms_epsilon", 0.0F),
              HasSubstr("not between"));
  EXPECT_THAT(failure_with("llama.attention.layer_norm_rms_epsilon", -1e-5F),
              HasSubstr("not between"));
  EXPECT_THAT(failure_with("llama.rope.scaling.factor", std::numeric_limits<float>::infinity()),
              StartsWith("m: llama.rope.scaling.factor is inf"));
  EXPECT_THAT(failure_with("llama.block_count", "two"),
              HasSubstr("it has type string where an integer belongs"));
}

}  // namespace
}  // namespace memdecay
