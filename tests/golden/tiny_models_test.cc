// Every tensor type and every architecture against transformers in fp32: tiny random models, whose
// golden files list the whole vocabulary.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "golden_model.h"

namespace memdecay {
namespace {

constexpr std::array<const char*, 18> kNames = {
    "tiny-llama-f32",  "tiny-llama-f16",  "tiny-llama-bf16", "tiny-llama-q4_0",   "tiny-llama-q4_1",
    "tiny-llama-q5_0", "tiny-llama-q5_1", "tiny-llama-q8_0", "tiny-llama-q2_k",   "tiny-llama-q3_k",
    "tiny-llama-q4_k", "tiny-llama-q5_k", "tiny-llama-q6_k", "tiny-llama-iq4_nl", "tiny-llama3",
    "tiny-qwen2",      "tiny-qwen3",      "tiny-gemma3"};

GoldenSummary judge(const std::string& name, Precision precision, const KernelTable& kernels) {
  const auto golden = GoldenFile::read(MEMDECAY_GOLDEN_FOLDER "/tiny/" + name + ".golden");
  EXPECT_TRUE(golden.ok()) << golden.status().message();
  auto model = GoldenModel::open(MEMDECAY_TINY_MODELS "/" + name + ".gguf",
                                 {.precision = precision, .kernels = &kernels});
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!golden.ok() || !model.ok()) return {};
  auto summary = (*model)->judge(*golden, golden->n_chunks());
  EXPECT_TRUE(summary.ok()) << summary.status().message();
  if (!summary.ok()) return {};
  std::printf("%s: mean KL %.3g, largest KL %.3g, same top %.4f, largest difference %.3g\n",
              name.c_str(), summary->mean_kl(), summary->kl_quantile(1.0), summary->same_top(),
              summary->largest_difference());
  return std::move(summary).value();
}

class TinyModel : public testing::TestWithParam<const char*> {};

TEST_P(TinyModel, ExactIsTheReference) {
  for (const KernelTable* kernels : supported_kernels()) {
    const GoldenSummary summary = judge(GetParam(), Precision::kExact, *kernels);
    ASSERT_GT(summary.count(), 0U);
    EXPECT_LE(summary.mean_kl(), 1e-7);
    EXPECT_LE(summary.largest_difference(), 2e-4);
    EXPECT_EQ(summary.same_top(), 1.0);
  }
}

// Eight-bit activations and fp16 keys cost about as much as llama.cpp's do on these files: 0.001 to
// 0.006 by type.
TEST_P(TinyModel, FastIsNear) {
  for (const KernelTable* kernels : supported_kernels()) {
    const GoldenSummary summary = judge(GetParam(), Precision::kFast, *kernels);
    ASSERT_GT(summary.count(), 0U);
    EXPECT_LE(summary.mean_kl(), 0.01);
    EXPECT_LE(summary.kl_quantile(1.0), 0.05);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, TinyModel, testing::ValuesIn(kNames), [](const auto& named) {
  std::string name = named.param;
  for (char& letter : name) {
    if (letter == '-') letter = '_';
  }
  return name;
});

}  // namespace
}  // namespace memdecay
