// The catalogue's models, where this user's cache has them: what their metadata says, and how fast.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <string>

#include "model/gguf/model_tensors.h"
#include "sys/user_folders.h"

namespace memdecay {
namespace {

// Sanitizers slow the walk over the vocabulary twentyfold and more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostMs = 1000;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr double kMostMs = 1000;
#else
constexpr double kMostMs = 50;
#endif
#else
constexpr double kMostMs = 50;
#endif

struct KnownModel {
  const char* name;
  std::uintmax_t bytes;
  ModelArchitecture architecture;
  int layers, embedding_length, feed_forward_length, heads, kv_heads, head_dim;
  int vocab_size, context_length, sliding_window;
  double theta;
  RopeOrder order;
  bool has_qkv_bias, has_tied_output;
  WeightType embedding_type;
};

constexpr KnownModel kModels[] = {
    {"smollm2", 98362432, ModelArchitecture::kLlama, 30, 576, 1536, 9, 3, 64, 49152, 8192, 0, 1e5,
     RopeOrder::kInterleaved, false, true, WeightType::kQ8_0},
    {"qwen-0.5b", 491400064, ModelArchitecture::kQwen2, 24, 896, 4864, 14, 2, 64, 151936, 32768, 0,
     1e6, RopeOrder::kHalves, true, false, WeightType::kQ5_0},
    {"qwen-1.5b", 1117320768, ModelArchitecture::kQwen2, 28, 1536, 8960, 12, 2, 128, 151936, 32768,
     0, 1e6, RopeOrder::kHalves, true, false, WeightType::kQ4_K},
    {"gemma3-270m", 253113024, ModelArchitecture::kGemma3, 18, 640, 2048, 4, 1, 256, 262144, 32768,
     512, 1e6, RopeOrder::kHalves, false, true, WeightType::kQ8_0}};

class RealModel : public testing::TestWithParam<KnownModel> {
 protected:
  void SetUp() override {
    const auto path = cached_model_path(GetParam().name);
    if (!path.ok()) GTEST_SKIP() << path.status().message();
    if (!std::filesystem::exists(*path))
      GTEST_SKIP() << "the model " << GetParam().name << " is not fetched (no " << *path << ")";
    path_ = path->string();
    ASSERT_EQ(std::filesystem::file_size(*path), GetParam().bytes);
    auto file = GgufFile::open(path_);
    ASSERT_TRUE(file.ok()) << file.status().message();
    file_.emplace(std::move(file).value());
    auto config = ModelConfig::read(*file_);
    ASSERT_TRUE(config.ok()) << config.status().message();
    config_ = std::move(config).value();
  }
  std::string path_;
  std::optional<GgufFile> file_;
  ModelConfig config_;
};

TEST_P(RealModel, HasTheExpectedConfig) {
  const KnownModel& known = GetParam();
  EXPECT_EQ(config_.architecture, known.architecture);
  EXPECT_EQ(config_.layers, known.layers);
  EXPECT_EQ(config_.embedding_length, known.embedding_length);
  EXPECT_EQ(config_.feed_forward_length, known.feed_forward_length);
  EXPECT_EQ(config_.heads, known.heads);
  EXPECT_EQ(config_.kv_heads, known.kv_heads);
  EXPECT_EQ(config_.head_dim, known.head_dim);
  EXPECT_EQ(config_.vocab_size, known.vocab_size);
  EXPECT_EQ(config_.context_length, known.context_length);
  EXPECT_EQ(config_.sliding_window, known.sliding_window);
  EXPECT_EQ(config_.rope.theta, known.theta);
  EXPECT_EQ(config_.rope.dimensions, known.head_dim);
  EXPECT_EQ(config_.rope.order, known.order);
  EXPECT_EQ(config_.has_qkv_bias, known.has_qkv_bias);
  EXPECT_EQ(config_.has_tied_output, known.has_tied_output);
  EXPECT_FLOAT_EQ(config_.query_scale, 1 / std::sqrt(static_cast<float>(known.head_dim)));
  const bool is_gemma3 = known.architecture == ModelArchitecture::kGemma3;
  EXPECT_EQ(config_.has_qk_norm, is_gemma3);
  EXPECT_EQ(config_.has_post_norms, is_gemma3);
  for (int layer = 0; layer < config_.layers; ++layer)
    EXPECT_EQ(config_.is_sliding(layer), is_gemma3 && layer % 6 != 5) << layer;
}

TEST_P(RealModel, HasEveryTensorAndNoOther) {
  const auto tensors = ModelTensors::find(*file_, config_);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_EQ(tensors->token_embedding().type, GetParam().embedding_type);
  EXPECT_EQ(tensors->layer(config_.layers - 1).gate.rows(), config_.feed_forward_length);
  // The data of the last tensor ends where the file does.
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < file_->tensor_count(); ++i)
    end =
        std::max<std::uint64_t>(end, file_->tensor(i).file_offset + file_->tensor(i).bytes.size());
  EXPECT_LE(end, GetParam().bytes);
  EXPECT_GE(end + file_->alignment(), GetParam().bytes);
}

TEST_P(RealModel, OpensWithinFiftyMilliseconds) {
  double best_ms = 1e9;
  std::size_t tokens = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    const auto file = GgufFile::open(path_);
    ASSERT_TRUE(file.ok());
    const auto config = ModelConfig::read(*file);
    ASSERT_TRUE(config.ok() && ModelTensors::find(*file, *config).ok());
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    best_ms = std::min(best_ms, spent.count());
    const auto strings = file->strings("tokenizer.ggml.tokens").value();
    tokens = static_cast<std::size_t>(std::distance(strings.begin(), strings.end()));
  }
  EXPECT_EQ(tokens, static_cast<std::size_t>(config_.vocab_size));
  EXPECT_LT(best_ms, kMostMs);
  std::printf("%s: header of %zu bytes opened and checked in %.2f ms\n", GetParam().name,
              file_->data_offset(), best_ms);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, RealModel, testing::ValuesIn(kModels),
                         [](const auto& instance) {
                           std::string name = instance.param.name;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace memdecay
