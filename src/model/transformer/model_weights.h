// ModelWeights: every weight of a model in the order that the kernels want, in one arena.
//
// Matrices are repacked once into panels (quant/panel.h), bit for bit; with Precision::kExact they
// are dequantized to F32 panels instead, 4 bytes a weight. Vectors (norms, biases) become fp32.
// Constant after load_weights(); any thread reads.
#pragma once

#include <memory>
#include <vector>

#include "core/status.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/model_config.h"
#include "model/gguf/model_tensors.h"
#include "quant/panel.h"
#include "sys/memory.h"
#include "sys/thread_team.h"

namespace memdecay {

enum class Precision : std::uint8_t {
  kFast,   ///< stored weights, int8 activations, fp16 keys and values
  kExact,  ///< everything in fp32: slow, the oracle of the tests
};

/// One transformer layer. Pointers that a model does without are null.
struct LayerWeights {
  const float* attention_norm = nullptr;  ///< [embedding_length]
  PanelMatrix q, k, v;            ///< [heads * head_dim, embedding_length]; k and v: kv_heads
  const float* q_bias = nullptr;  ///< [heads * head_dim]
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* q_norm = nullptr;  ///< [head_dim]
  const float* k_norm = nullptr;
  PanelMatrix attention_output;                ///< [embedding_length, heads * head_dim]
  const float* post_attention_norm = nullptr;  ///< [embedding_length]
  const float* ffn_norm = nullptr;             ///< [embedding_length]
  PanelMatrix gate, up;                        ///< [feed_forward_length, embedding_length]
  PanelMatrix down;                            ///< [embedding_length, feed_forward_length]
  const float* post_ffn_norm = nullptr;        ///< [embedding_length]
};

struct ModelWeights {
  std::vector<LayerWeights> layers;
  PanelMatrix embedding;               ///< [vocab_size, embedding_length]
  PanelMatrix output;                  ///< the panels of `embedding` where the model ties the two
  const float* output_norm = nullptr;  ///< [embedding_length]
  std::vector<float> rope_divisors;    ///< [rope pairs], divide the frequencies; empty for none
  bool needs_quantized_activations = false;
  /// Bytes of all matrices that decoding one token reads: the layers and the output head.
  std::uint64_t bytes_per_token = 0;

  AnonymousMemory arena;
  std::vector<std::vector<float>> vectors;
};

/// Repacks with all members of the team, tensor by tensor; the file's pages are dropped as they are
/// used up, and the file may be closed afterwards. kResourceExhausted when there is no memory.
Result<std::unique_ptr<ModelWeights>> load_weights(const GgufFile& file, const ModelConfig& config,
                                                   const ModelTensors& tensors, Precision precision,
                                                   ThreadTeam& team);

}  // namespace memdecay
