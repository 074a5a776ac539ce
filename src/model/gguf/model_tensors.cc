#include "model/gguf/model_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace memdecay {
namespace {

constexpr std::string_view kEmbedding = "token_embd.weight";
constexpr std::string_view kOutputNorm = "output_norm.weight";
constexpr std::string_view kOutput = "output.weight";
constexpr std::string_view kRopeDivisors = "rope_freqs.weight";

/// A tensor that every layer has (if `wanted`): its name after "blk.N." and its shape.
struct LayerSlot {
  std::string_view suffix;
  GgufTensor LayerTensors::*member;
  bool wanted;
  int row_values;
  int rows;  ///< 0: a vector
};

constexpr std::size_t kLayerSlots = 16;

std::array<LayerSlot, kLayerSlots> layer_slots(const ModelConfig& config) {
  using L = LayerTensors;
  const int width = config.embedding_length;
  const int inner = config.feed_forward_length;
  const int queries = config.heads * config.head_dim;
  const int keys = config.kv_heads * config.head_dim;
  const bool bias = config.has_qkv_bias;
  return {{{"attn_norm.weight", &L::attention_norm, true, width, 0},
           {"attn_q.weight", &L::query, true, width, queries},
           {"attn_k.weight", &L::key, true, width, keys},
           {"attn_v.weight", &L::value, true, width, keys},
           {"attn_q.bias", &L::query_bias, bias, queries, 0},
           {"attn_k.bias", &L::key_bias, bias, keys, 0},
           {"attn_v.bias", &L::value_bias, bias, keys, 0},
           {"attn_q_norm.weight", &L::query_norm, config.has_qk_norm, config.head_dim, 0},
           {"attn_k_norm.weight", &L::key_norm, config.has_qk_norm, config.head_dim, 0},
           {"attn_output.weight", &L::attention_output, true, queries, width},
           {"post_attention_norm.weight", &L::post_attention_norm, config.has_post_norms, width, 0},
           {"ffn_norm.weight", &L::feed_forward_norm, true, width, 0},
           {"ffn_gate.weight", &L::gate, true, width, inner},
           {"ffn_up.weight", &L::up, true, width, inner},
           {"ffn_down.weight", &L::down, true, inner, width},
           {"post_ffw_norm.weight", &L::post_feed_forward_norm, config.has_post_norms, width, 0}}};
}

/// "blk.N.suffix" without an allocation: look-ups are many.
class LayerTensorName {
 public:
  LayerTensorName(int layer, std::string_view suffix) {
    const auto end = fmt::format_to_n(text_.data(), text_.size(), "blk.{}.{}", layer, suffix);
    size_ = std::min(end.size, text_.size());
  }
  std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 64> text_{};
  std::size_t size_ = 0;
};

/// The layer and suffix of "blk.N.suffix", N written plainly; false for other names.
bool split_layer_name(std::string_view name, int& layer, std::string_view& suffix) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const std::size_t dot = name.find('.');
  if (dot == 0 || dot > 4 || dot == std::string_view::npos) return false;
  const std::string_view digits = name.substr(0, dot);
  if (digits.size() > 1 && digits.front() == '0') return false;
  layer = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return false;
    layer = layer * 10 + (digit - '0');
  }
  suffix = name.substr(dot + 1);
  return true;
}

}  // namespace

Status ModelTensors::find_shaped(std::string_view name, int dimension_count, int row_values,
                                 int rows, GgufTensor& tensor) const {
  MEMDECAY_ASSIGN_OR_RETURN(tensor, file_->readable_tensor(name));
  // Some writers give vectors further dimensions of length 1.
  if (tensor.row_values() == row_values && tensor.dimensions[1] == rows && tensor.rows() == rows)
    return {};
  GgufTensor wanted;
  wanted.dimension_count = dimension_count;
  wanted.dimensions = {row_values, rows, 1, 1};
  return make_status(StatusCode::kCorrupt, "{}: the tensor {} has the shape {} where {} belongs",
                     file_->name(), name, tensor.shape_text(), wanted.shape_text());
}

Status ModelTensors::find_layer(int layer, LayerTensors& tensors) const {
  for (const LayerSlot& slot : layer_slots(*config_)) {
    if (!slot.wanted) continue;
    const LayerTensorName name(layer, slot.suffix);
    MEMDECAY_RETURN_IF_ERROR(find_shaped(name.view(), slot.rows == 0 ? 1 : 2, slot.row_values,
                                         std::max(slot.rows, 1), tensors.*slot.member));
  }
  return {};
}

Status ModelTensors::find_global() {
  const int width = config_->embedding_length;
  const int vocabulary = config_->vocab_size;
  MEMDECAY_RETURN_IF_ERROR(find_shaped(kEmbedding, 2, width, vocabulary, token_embedding_));
  MEMDECAY_RETURN_IF_ERROR(find_shaped(kOutputNorm, 1, width, 1, output_norm_));
  output_ = token_embedding_;
  if (!config_->has_tied_output)
    MEMDECAY_RETURN_IF_ERROR(find_shaped(kOutput, 2, width, vocabulary, output_));
  return read_rope_divisors();
}

Status ModelTensors::read_rope_divisors() {
  if (config_->architecture != ModelArchitecture::kLlama || !file_->find_tensor(kRopeDivisors))
    return {};
  GgufTensor tensor;
  const int pairs = config_->rope.dimensions / 2;
  MEMDECAY_RETURN_IF_ERROR(find_shaped(kRopeDivisors, 1, pairs, 1, tensor));
  rope_divisors_.resize(static_cast<std::size_t>(pairs));
  dequantize_weights(*tensor.type, tensor.bytes, rope_divisors_);
  for (const float divisor : rope_divisors_)
    if (!(divisor > 0) || !std::isfinite(divisor))
      return make_status(StatusCode::kCorrupt, "{}: the tensor {} has the divisor {}",
                         file_->name(), kRopeDivisors, divisor);
  return {};
}

Status ModelTensors::refuse_unknown_tensors() const {
  const auto slots = layer_slots(*config_);
  const auto is_known = [&](std::string_view name) {
    int layer = 0;
    std::string_view suffix;
    if (split_layer_name(name, layer, suffix))
      return layer < config_->layers &&
             std::any_of(slots.begin(), slots.end(), [&](const LayerSlot& slot) {
               return slot.wanted && slot.suffix == suffix;
             });
    return name == kEmbedding || name == kOutputNorm || name == kOutput ||
           (name == kRopeDivisors && config_->architecture == ModelArchitecture::kLlama);
  };
  for (std::size_t i = 0; i < file_->tensor_count(); ++i) {
    const std::string_view name = file_->tensor(i).name;
    if (!is_known(name))
      return make_status(StatusCode::kUnsupported,
                         "{}: this build does not know what the tensor {} does in a {} model of {} "
                         "layers, and without it the answers would be wrong",
                         file_->name(), name, architecture_name(config_->architecture),
                         config_->layers);
  }
  return {};
}

Result<ModelTensors> ModelTensors::find(const GgufFile& file, const ModelConfig& config) {
  ModelTensors tensors(file, config);
  MEMDECAY_RETURN_IF_ERROR(tensors.find_global());
  for (int layer = 0; layer < config.layers; ++layer) {
    LayerTensors unused;
    MEMDECAY_RETURN_IF_ERROR(tensors.find_layer(layer, unused));
  }
  MEMDECAY_RETURN_IF_ERROR(tensors.refuse_unknown_tensors());
  return tensors;
}

LayerTensors ModelTensors::layer(int layer) const {
  MEMDECAY_CHECK(layer >= 0 && layer < config_->layers);
  LayerTensors tensors;
  MEMDECAY_CHECK(find_layer(layer, tensors).ok());
  return tensors;
}

}  // namespace memdecay
