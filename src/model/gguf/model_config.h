// ModelConfig: what a GGUF file's metadata says about the model, as the numbers of a forward pass.
//
// Reads the architectures llama, qwen2, qwen3 and gemma3. Everything is range-checked here, so that
// the users of a ModelConfig check nothing: counts are positive, heads is a multiple of kv_heads,
// head_dim and rope dimensions are even. Metadata that would change the computation in a way this
// build does not know is refused in words rather than ignored. A plain value; copy it freely.
// Cost: a few dozen look-ups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/rope_frequencies.h"

namespace memdecay {

enum class ModelArchitecture : std::uint8_t { kLlama, kQwen2, kQwen3, kGemma3 };
/// As general.architecture spells it.
std::string_view architecture_name(ModelArchitecture architecture);

/// The function between the two halves of the feed-forward block.
enum class GateActivation : std::uint8_t { kSilu, kGeluTanh };

struct ModelConfig {
  ModelArchitecture architecture = ModelArchitecture::kLlama;
  std::string name;  ///< general.name, or empty
  int layers = 0;
  int embedding_length = 0;
  int feed_forward_length = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim =
      0;  ///< of queries, keys and values; heads * head_dim may differ from embedding_length
  int vocab_size = 0;  ///< rows of the embedding, equal to the tokenizer's list where there is one
  int context_length = 0;
  float rms_epsilon = 0;

  RopeParameters rope;        ///< of layers that see everything, and of all layers but gemma3's
  RopeParameters local_rope;  ///< of gemma3's sliding layers; equal to rope elsewhere
  int sliding_window = 0;  ///< a sliding layer's query sees this many positions, itself included;
                           ///< 0 where no layer slides
  std::vector<bool> sliding_layers;  ///< by layer

  float query_scale = 0;          ///< scores are query_scale * (q . k)
  float embedding_scale = 1;      ///< embeddings are multiplied by this
  float final_logit_softcap = 0;  ///< c > 0: logits become c * tanh(logits / c)
  GateActivation activation = GateActivation::kSilu;
  bool has_qk_norm = false;      ///< RMSNorm over each head of q and k before RoPE
  bool has_qkv_bias = false;     ///< biases on the q, k and v projections
  bool has_post_norms = false;   ///< RMSNorm on what attention and feed-forward add
  bool has_tied_output = false;  ///< no output.weight: the embedding serves

  /// kUnsupported for other architectures and variants; kCorrupt for values that cannot be.
  static Result<ModelConfig> read(const GgufFile& file);

  bool is_sliding(int layer) const { return sliding_layers[static_cast<std::size_t>(layer)]; }
  const RopeParameters& rope_of(int layer) const { return is_sliding(layer) ? local_rope : rope; }
};

}  // namespace memdecay
