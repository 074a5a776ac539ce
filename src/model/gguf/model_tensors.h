// ModelTensors: which tensor of a GGUF file plays which part in the forward pass.
//
// find() checks once that every tensor the architecture needs is there, readable and of the shape
// that the ModelConfig demands, and that the file has no other tensor: one that nobody uses means
// the model computes something this build does not know, so its answers would be wrong without a
// sign. After that every look-up succeeds. A view of the file and the config, which must outlive
// it; any thread. Costs: find() is a few look-ups per tensor; layer() about 15 look-ups, no
// allocation that stays.
#pragma once

#include <string_view>
#include <vector>

#include "core/status.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/model_config.h"

namespace memdecay {

/// One layer's tensors. Those that the config rules out (biases, norms of q and k, post norms) have
/// no name and no bytes.
struct LayerTensors {
  GgufTensor attention_norm;
  GgufTensor query, key, value;  ///< rows of embedding_length
  GgufTensor query_bias, key_bias, value_bias;
  GgufTensor query_norm, key_norm;
  GgufTensor attention_output;  ///< rows of heads * head_dim
  GgufTensor post_attention_norm;
  GgufTensor feed_forward_norm;
  GgufTensor gate, up, down;
  GgufTensor post_feed_forward_norm;
};

class ModelTensors {
 public:
  /// kCorrupt for a tensor that is missing or has another shape; kUnsupported for a type this build
  /// cannot read and for a tensor it does not know.
  static Result<ModelTensors> find(const GgufFile& file, const ModelConfig& config);

  const GgufTensor& token_embedding() const { return token_embedding_; }
  const GgufTensor& output_norm() const { return output_norm_; }
  /// The embedding where the output is tied.
  const GgufTensor& output() const { return output_; }
  /// For rope_frequencies(): the values of rope_freqs.weight; empty where there is none.
  const std::vector<float>& rope_divisors() const { return rope_divisors_; }
  /// REQUIRES: 0 <= layer < config.layers.
  LayerTensors layer(int layer) const;

 private:
  ModelTensors(const GgufFile& file, const ModelConfig& config) : file_(&file), config_(&config) {}
  Status find_global();
  Status read_rope_divisors();
  Status find_layer(int layer, LayerTensors& tensors) const;
  Status find_shaped(std::string_view name, int dimension_count, int row_values, int rows,
                     GgufTensor& tensor) const;
  Status refuse_unknown_tensors() const;

  const GgufFile* file_;
  const ModelConfig* config_;
  GgufTensor token_embedding_;
  GgufTensor output_norm_;
  GgufTensor output_;
  std::vector<float> rope_divisors_;
};

}  // namespace memdecay
