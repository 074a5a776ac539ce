#include "engine/model_inspection.h"

#include <algorithm>

#include "engine/engine_options.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/model_config.h"
#include "model/transformer/layer_groups.h"
#include "sys/memory.h"

namespace memdecay {
namespace {

// Share of the machine's memory that a model and its cache may take: the rest is for everything
// else that runs.
constexpr double kUsableMemoryShare = 0.9;
constexpr int kPageTokens = 32;

void count_kv_bytes(const ModelConfig& config, ModelInspection& result) {
  for (const LayerGroups::Group& group :
       make_layer_groups(config, kPageTokens, KvFormat::kF16).groups) {
    const std::uint64_t token_bytes = group.layout.page_bytes() / kPageTokens;
    if (group.window == 0) {
      result.kv_bytes_per_token += token_bytes;
    } else {  // as kept while a pass is computed; a window may begin and end inside a page
      const int held = group.window + EngineOptions().batch_tokens + EngineOptions::kCutBackTokens +
                       2 * kPageTokens;
      result.sliding_window_bytes += token_bytes * static_cast<std::uint64_t>(held);
    }
  }
  result.machine_memory_bytes = physical_memory_bytes();
  const double left = kUsableMemoryShare * static_cast<double>(result.machine_memory_bytes) -
                      static_cast<double>(result.file_bytes + result.sliding_window_bytes);
  if (result.kv_bytes_per_token == 0) return;
  result.tokens_that_fit = static_cast<std::int64_t>(
      std::max(0.0, left) / static_cast<double>(result.kv_bytes_per_token));
}

nlohmann::ordered_json json_of(const GgufValue& value) {
  switch (value.type()) {
    case GgufValueType::kString:
      return std::string(value.as<std::string_view>().value());
    case GgufValueType::kBool:
      return value.as<bool>().value();
    case GgufValueType::kFloat32:
    case GgufValueType::kFloat64:
      return value.as<double>().value();
    case GgufValueType::kArray:
      break;
    default: {
      const Result<std::int64_t> number = value.as<std::int64_t>();
      if (number.ok()) return *number;
    }
  }
  return value.describe();
}

void list_contents(const GgufFile& file, ModelInspection& result) {
  for (std::size_t i = 0; i < file.tensor_count(); ++i) {
    const GgufTensor tensor = file.tensor(i);
    ModelInspection::TensorTotal& total =
        result.tensors[std::string(gguf_type_name(tensor.type_number))];
    ++total.count;
    total.bytes += tensor.bytes.size();
  }
  for (std::size_t i = 0; i < file.metadata_count(); ++i) {
    const GgufValue value = file.value(i);
    result.metadata.push_back({std::string(file.key(i)), value.describe(), json_of(value)});
  }
}

}  // namespace

Result<ModelInspection> inspect_model(const std::string& path) {
  MEMDECAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path));
  MEMDECAY_ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::read(file));
  ModelInspection result;
  result.path = file.name();
  result.file_bytes = file.bytes().size();
  result.gguf_version = file.version();
  result.architecture = architecture_name(config.architecture);
  result.name = config.name;
  result.layers = config.layers;
  result.embedding_length = config.embedding_length;
  result.heads = config.heads;
  result.kv_heads = config.kv_heads;
  result.head_dim = config.head_dim;
  result.vocab_size = config.vocab_size;
  result.context_length = config.context_length;
  result.sliding_window = config.sliding_window;
  count_kv_bytes(config, result);
  list_contents(file, result);
  return result;
}

}  // namespace memdecay
