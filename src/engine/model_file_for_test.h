// A random model as a file, for tests that need an Engine: written to the test's temporary folder,
// removed at the end. One thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "model/transformer/random_model_for_test.h"
#include "sys/folder_for_test.h"

namespace memdecay {

class ModelFile {
 public:
  explicit ModelFile(std::string_view architecture, const RandomModelShape& shape = {})
      : ModelFile(random_model(architecture, shape, 11)) {}
  explicit ModelFile(const std::vector<std::byte>& bytes) {
    path_ =
        folder_.write("model.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  const std::string& path() const { return path_; }
  /// Small passes, so that chunks and batches are cut often. One thread.
  EngineOptions options() const {
    EngineOptions options;
    options.model_path = path_;
    options.threads = 1;
    options.page_tokens = 16;
    options.batch_tokens = 64;
    options.chunk_tokens = 24;
    options.share_prefixes = false;  // a test that shares says so
    return options;
  }
  std::unique_ptr<Engine> engine() const { return engine(options()); }
  /// What `pages` pages of each layer group take.
  std::uint64_t bytes_of_pages(int pages) const {
    const std::unique_ptr<Engine> probe = engine();
    std::uint64_t bytes = 0;
    for (const KvLayerGroup& group : probe->cache().groups())
      bytes += PagePool::stride_bytes_for(group.layout) * static_cast<std::uint64_t>(pages);
    return bytes;
  }
  static std::unique_ptr<Engine> engine(const EngineOptions& options) {
    Result<std::unique_ptr<Engine>> engine = Engine::create(options);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return std::move(engine).value();
  }

 private:
  const FolderForTest folder_;
  std::string path_;
};

/// Every page has its owners, every byte is counted, and the budget has held at every moment.
inline void expect_sound(const Engine& engine) {
  const Status status = engine.cache().validate(engine.other_budget_bytes());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_LE(engine.cache().budget().peak_bytes(), engine.cache().budget().limit_bytes());
}

/// For tests that take bytes away from an engine.
inline KvBudget& budget_of(Engine& engine) {
  return const_cast<KvBudget&>(engine.cache().budget());
}

/// Labels that call the first tokens system text.
inline PromptLabels system_labels(Position tokens) {
  RegionSpan span;
  span.region = Region::kSystem;
  span.tokens = {0, tokens};
  PromptLabels labels;
  labels.regions.push_back(span);
  return labels;
}

inline std::vector<TokenId> random_prompt(int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 50);
  return tokens;
}

}  // namespace memdecay
