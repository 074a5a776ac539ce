#include "model/gguf/model_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf/tiny_model_for_test.h"

namespace memdecay {
namespace {

using testing::HasSubstr;

/// The failure of find(), or "ok"; where ok, `check` sees the tensors.
template <typename Check>
std::string find(GgufBuilder builder, Check check) {
  const auto bytes = builder.build();
  const auto file = GgufFile::from_bytes(bytes, "m");
  if (!file.ok()) return file.status().message();
  const auto config = ModelConfig::read(*file);
  if (!config.ok()) return config.status().message();
  const auto tensors = ModelTensors::find(*file, *config);
  if (!tensors.ok()) return tensors.status().message();
  check(*tensors);
  return "ok";
}

std::string failure_of(GgufBuilder builder) {
  return find(std::move(builder), [](const ModelTensors&) {});
}

TEST(ModelTensors, FindsEveryArchitecturesTensors) {
  EXPECT_EQ(find(tiny_model("llama"),
                 [](const ModelTensors& tensors) {
                   EXPECT_EQ(tensors.token_embedding().rows(), 40);
                   EXPECT_EQ(tensors.output().name, "token_embd.weight");
                   EXPECT_EQ(tensors.output_norm().name, "output_norm.weight");
                   EXPECT_TRUE(tensors.rope_divisors().empty());
                   const LayerTensors layer = tensors.layer(1);
                   EXPECT_EQ(layer.query.name, "blk.1.attn_q.weight");
                   EXPECT_EQ(layer.down.type, WeightType::kQ5_0);
                   EXPECT_EQ(layer.down.row_values(), 64);
                   EXPECT_TRUE(layer.query_bias.bytes.empty());
                   EXPECT_TRUE(layer.query_norm.name.empty());
                 }),
            "ok");
  EXPECT_EQ(find(tiny_model("qwen2"),
                 [](const ModelTensors& tensors) {
                   EXPECT_EQ(tensors.layer(0).key_bias.row_values(), 16);
                 }),
            "ok");
  EXPECT_EQ(find(tiny_model("qwen3").add_tensor("output.weight", {32, 40}, WeightType::kF16),
                 [](const ModelTensors& tensors) {
                   EXPECT_EQ(tensors.output().type, WeightType::kF16);
                   EXPECT_EQ(tensors.layer(0).query_norm.row_values(), 8);
                 }),
            "ok");
  EXPECT_EQ(find(tiny_model("gemma3"),
                 [](const ModelTensors& tensors) {
                   EXPECT_EQ(tensors.layer(1).post_feed_forward_norm.name,
                             "blk.1.post_ffw_norm.weight");
                 }),
            "ok");
}

TEST(ModelTensors, NamesWhatIsMissing) {
  EXPECT_EQ(failure_of(tiny_model().remove_tensor("blk.1.ffn_up.weight")),
            "m: the tensor blk.1.ffn_up.weight is missing");
  EXPECT_EQ(failure_of(tiny_model().add("llama.block_count", std::uint32_t{3})),
            "m: the tensor blk.2.attn_norm.weight is missing");
  EXPECT_EQ(failure_of(tiny_model("qwen2").remove_tensor("blk.1.attn_v.bias")),
            "m: the tensor blk.1.attn_v.bias is missing");
}

TEST(ModelTensors, RefusesOtherShapesAndTypes) {
  EXPECT_EQ(failure_of(tiny_model()
                           .remove_tensor("blk.0.attn_k.weight")
                           .add_tensor("blk.0.attn_k.weight", {32, 32})),
            "m: the tensor blk.0.attn_k.weight has the shape [32, 32] where [32, 16] belongs");
  EXPECT_EQ(failure_of(tiny_model()
                           .remove_tensor("output_norm.weight")
                           .add_tensor("output_norm.weight", {1, 32})),
            "m: the tensor output_norm.weight has the shape [1, 32] where [32] belongs");
  EXPECT_EQ(failure_of(tiny_model()
                           .remove_tensor("blk.0.attn_k.weight")
                           .add_raw_tensor("blk.0.attn_k.weight", {32, 16}, 17, 64)),
            "m: the tensor blk.0.attn_k.weight has type IQ2_XS, which this build cannot read");
}

TEST(ModelTensors, RefusesTensorsItDoesNotKnow) {
  EXPECT_EQ(failure_of(tiny_model().add_tensor("blk.0.attn_output.bias", {32})),
            "m: this build does not know what the tensor blk.0.attn_output.bias does in a llama "
            "model of 2 layers, and without it the answers would be wrong");
  for (const char* name : {"blk.2.attn_norm.weight", "blk.00.attn_norm.weight", "blk..x", "blk.",
                           "blk.99999.x", "blk.-1.x", "blk.0.attn_q_norm.weight", "mm.0.weight"})
    EXPECT_THAT(failure_of(tiny_model().add_tensor(name, {32})), HasSubstr(name));
  EXPECT_THAT(failure_of(tiny_model("qwen2").add_tensor("rope_freqs.weight", {4})),
              HasSubstr("rope_freqs.weight"));
}

TEST(ModelTensors, ReadsRopeDivisors) {
  GgufBuilder builder = tiny_model().add_tensor("rope_freqs.weight", {4});
  EXPECT_THAT(failure_of(builder), HasSubstr("has the divisor 0"));
  auto bytes = builder.build();
  const std::array<float, 4> divisors = {1, 2, 4, 32};
  const std::size_t at = [&] {
    const auto zeros = GgufFile::from_bytes(bytes, "m").value();
    return static_cast<std::size_t>(zeros.find_tensor("rope_freqs.weight")->file_offset);
  }();
  std::memcpy(bytes.data() + at, divisors.data(), sizeof divisors);
  const auto file = GgufFile::from_bytes(bytes, "m");
  const auto config = ModelConfig::read(*file);
  const auto tensors = ModelTensors::find(*file, *config);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_THAT(tensors->rope_divisors(), testing::ElementsAreArray(divisors));
}

}  // namespace
}  // namespace memdecay
