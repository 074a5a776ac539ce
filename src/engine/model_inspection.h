// What a model file holds, and what of it fits in this machine: `memdecay inspect`.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/status.h"

namespace memdecay {

struct ModelInspection {
  struct TensorTotal {
    int count = 0;
    std::uint64_t bytes = 0;
  };
  std::string path;
  std::uint64_t file_bytes = 0;
  std::uint32_t gguf_version = 0;
  std::string architecture;
  std::string name;
  int layers = 0;
  int embedding_length = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int context_length = 0;                ///< what the model was trained for
  int sliding_window = 0;                ///< 0: no layer slides
  std::uint64_t kv_bytes_per_token = 0;  ///< fp16, of the layers that keep everything
  std::uint64_t sliding_window_bytes =
      0;  ///< most bytes of all sliding layers, whatever the length
  std::uint64_t machine_memory_bytes = 0;
  std::int64_t tokens_that_fit =
      0;  ///< keys and values beside the weights; 0: none, or no layer keeps everything
  std::map<std::string, TensorTotal> tensors;  ///< by type name
  struct Metadata {
    std::string key;
    std::string text;              ///< as people read it
    nlohmann::ordered_json value;  ///< as programs do; long arrays as their text
  };
  std::vector<Metadata> metadata;  ///< in the file's order
};

/// Reads the header only. Fails as GgufFile::open and ModelConfig::read do.
Result<ModelInspection> inspect_model(const std::string& path);

}  // namespace memdecay
