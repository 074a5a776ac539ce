#include "model/gguf/model_config.h"

#include <array>
#include <cmath>
#include <utility>

#include "model/gguf/model_metadata.h"

namespace memdecay {
namespace {

constexpr int kMaxLayers = 1024;
constexpr int kMaxLength = 1 << 20;  // of vectors inside the model
constexpr int kMaxHeads = 1024;
constexpr int kMaxHeadDim = 512;
constexpr int kMaxVocabulary = 1 << 24;
constexpr int kMaxContext = 1 << 30;
constexpr double kLocalRopeTheta = 10000;
constexpr int kGemma3Pattern = 6;         // every sixth layer sees everything
constexpr int kGemma3LargestLayers = 62;  // of the 27B model, the one with its own query scale

constexpr std::array<std::pair<ModelArchitecture, std::string_view>, 4> kArchitectures = {
    {{ModelArchitecture::kLlama, "llama"},
     {ModelArchitecture::kQwen2, "qwen2"},
     {ModelArchitecture::kQwen3, "qwen3"},
     {ModelArchitecture::kGemma3, "gemma3"}}};

Result<ModelArchitecture> read_architecture(const GgufFile& file) {
  MEMDECAY_ASSIGN_OR_RETURN(const auto text,
                            file.required<std::string_view>("general.architecture"));
  for (const auto& [architecture, name] : kArchitectures)
    if (text == name) return architecture;
  return make_status(StatusCode::kUnsupported,
                     "{}: the architecture {} is not supported; this build reads llama, qwen2, "
                     "qwen3 and gemma3",
                     file.name(), quote_gguf_text(text, 40));
}

Status read_head_dim(const ModelMetadata& metadata, ModelConfig& config) {
  const GgufFile& file = metadata.file();
  MEMDECAY_ASSIGN_OR_RETURN(config.head_dim,
                            metadata.count_or("attention.key_length", 1, kMaxHeadDim, 0));
  if (config.head_dim == 0) {
    if (config.embedding_length % config.heads != 0)
      return make_status(StatusCode::kCorrupt,
                         "{}: an embedding of {} values does not divide among {} heads",
                         file.name(), config.embedding_length, config.heads);
    config.head_dim = config.embedding_length / config.heads;
  }
  if (config.head_dim % 2 != 0 || config.head_dim > kMaxHeadDim)
    return make_status(StatusCode::kUnsupported,
                       "{}: heads of {} values are not supported; this build reads even sizes up "
                       "to {}",
                       file.name(), config.head_dim, kMaxHeadDim);
  MEMDECAY_ASSIGN_OR_RETURN(const int value_length, metadata.count_or("attention.value_length", 1,
                                                                      kMaxLength, config.head_dim));
  if (value_length != config.head_dim)
    return make_status(StatusCode::kUnsupported,
                       "{}: keys of {} and values of {} are not supported; this build needs one "
                       "size for both",
                       file.name(), config.head_dim, value_length);
  return {};
}

Status read_sizes(const ModelMetadata& metadata, ModelConfig& config) {
  MEMDECAY_ASSIGN_OR_RETURN(config.layers, metadata.count("block_count", 1, kMaxLayers));
  MEMDECAY_ASSIGN_OR_RETURN(config.context_length,
                            metadata.count("context_length", 1, kMaxContext));
  MEMDECAY_ASSIGN_OR_RETURN(config.embedding_length,
                            metadata.count("embedding_length", 1, kMaxLength));
  const auto per_layer = [&](std::string_view suffix, int most) {
    return metadata.count_of_layers(suffix, config.layers, 1, most);
  };
  const auto missing = [&](std::string_view suffix) {
    return make_status(StatusCode::kCorrupt, "{}: the key {} is missing", metadata.file().name(),
                       metadata.key(suffix));
  };
  MEMDECAY_ASSIGN_OR_RETURN(const auto feed_forward, per_layer("feed_forward_length", kMaxLength));
  if (!feed_forward) return missing("feed_forward_length");
  config.feed_forward_length = *feed_forward;
  MEMDECAY_ASSIGN_OR_RETURN(const auto heads, per_layer("attention.head_count", kMaxHeads));
  if (!heads) return missing("attention.head_count");
  config.heads = *heads;
  MEMDECAY_ASSIGN_OR_RETURN(const auto kv_heads, per_layer("attention.head_count_kv", kMaxHeads));
  config.kv_heads = kv_heads.value_or(config.heads);
  if (config.heads % config.kv_heads != 0)
    return make_status(StatusCode::kCorrupt,
                       "{}: {} query heads do not divide among {} key-value heads",
                       metadata.file().name(), config.heads, config.kv_heads);
  return read_head_dim(metadata, config);
}

Status read_vocabulary(const ModelMetadata& metadata, ModelConfig& config) {
  const GgufFile& file = metadata.file();
  const auto embedding = file.find_tensor("token_embd.weight");
  if (!embedding)
    return make_status(StatusCode::kCorrupt, "{}: the tensor token_embd.weight is missing",
                       file.name());
  const std::int64_t rows = embedding->rows();
  if (rows > kMaxVocabulary)
    return make_status(StatusCode::kUnsupported,
                       "{}: a vocabulary of {} tokens is not supported; this build reads up to {}",
                       file.name(), rows, kMaxVocabulary);
  config.vocab_size = static_cast<int>(rows);
  MEMDECAY_ASSIGN_OR_RETURN(const int stated,
                            metadata.count_or("vocab_size", 1, kMaxVocabulary, config.vocab_size));
  if (stated != config.vocab_size)
    return make_status(StatusCode::kCorrupt, "{}: {} is {}, but token_embd.weight has {} rows",
                       file.name(), metadata.key("vocab_size"), stated, rows);
  MEMDECAY_ASSIGN_OR_RETURN(const auto tokens, file.optional<GgufArray>("tokenizer.ggml.tokens"));
  if (tokens && tokens->size() != static_cast<std::size_t>(rows))
    return make_status(StatusCode::kCorrupt,
                       "{}: tokenizer.ggml.tokens lists {} tokens, but token_embd.weight has {} "
                       "rows",
                       file.name(), tokens->size(), rows);
  return {};
}

Status read_rope_scaling(const ModelMetadata& metadata, RopeParameters& rope) {
  const GgufFile& file = metadata.file();
  MEMDECAY_ASSIGN_OR_RETURN(const auto type,
                            file.optional<std::string_view>(metadata.key("rope.scaling.type")));
  MEMDECAY_ASSIGN_OR_RETURN(const auto factor, metadata.number("rope.scaling.factor", 0, 1e6));
  // Files from before rope.scaling.* have this one.
  MEMDECAY_ASSIGN_OR_RETURN(const auto old_factor, metadata.number("rope.scale_linear", 0, 1e6));
  const std::string_view kind = type                     ? *type
                                : (old_factor || factor) ? std::string_view("linear")
                                                         : "none";
  if (kind == "none") return {};
  if (kind != "linear" && kind != "yarn")
    return make_status(StatusCode::kUnsupported,
                       "{}: RoPE scaling of type {} is not supported; this build knows linear and "
                       "yarn",
                       file.name(), quote_gguf_text(kind, 40));
  rope.scaling = kind == "linear" ? RopeScaling::kLinear : RopeScaling::kYarn;
  rope.factor = factor.value_or(old_factor.value_or(1));
  if (rope.factor == 0) rope.factor = 1;  // written where there is no scaling
  if (rope.factor < 1e-3)
    return make_status(StatusCode::kCorrupt, "{}: {} is {}, too small", file.name(),
                       metadata.key("rope.scaling.factor"), rope.factor);
  if (rope.scaling == RopeScaling::kLinear) return {};
  MEMDECAY_ASSIGN_OR_RETURN(rope.original_context_length,
                            metadata.count("rope.scaling.original_context_length", 1, kMaxContext));
  MEMDECAY_ASSIGN_OR_RETURN(const auto fast,
                            metadata.number("rope.scaling.yarn_beta_fast", 1e-3, 1e6));
  MEMDECAY_ASSIGN_OR_RETURN(const auto slow,
                            metadata.number("rope.scaling.yarn_beta_slow", 1e-3, 1e6));
  rope.yarn_beta_fast = fast.value_or(rope.yarn_beta_fast);
  rope.yarn_beta_slow = slow.value_or(rope.yarn_beta_slow);
  return {};
}

Status read_rope(const ModelMetadata& metadata, ModelConfig& config) {
  RopeParameters& rope = config.rope;
  rope.order = config.architecture == ModelArchitecture::kLlama ? RopeOrder::kInterleaved
                                                                : RopeOrder::kHalves;
  MEMDECAY_ASSIGN_OR_RETURN(rope.dimensions, metadata.count_or("rope.dimension_count", 2,
                                                               config.head_dim, config.head_dim));
  if (rope.dimensions % 2 != 0)
    return make_status(StatusCode::kCorrupt, "{}: {} is odd", metadata.file().name(),
                       metadata.key("rope.dimension_count"));
  MEMDECAY_ASSIGN_OR_RETURN(const auto theta, metadata.number("rope.freq_base", 2, 1e12));
  rope.theta = theta.value_or(rope.theta);
  MEMDECAY_RETURN_IF_ERROR(read_rope_scaling(metadata, rope));
  config.local_rope = rope;
  if (config.architecture != ModelArchitecture::kGemma3) return {};
  if (rope.scaling == RopeScaling::kYarn)
    return make_status(StatusCode::kUnsupported,
                       "{}: RoPE scaling of type \"yarn\" is not supported for gemma3",
                       metadata.file().name());
  MEMDECAY_ASSIGN_OR_RETURN(const auto local, metadata.number("rope.freq_base_swa", 2, 1e12));
  config.local_rope.theta = local.value_or(kLocalRopeTheta);
  config.local_rope.scaling = RopeScaling::kNone;
  config.local_rope.factor = 1;
  return {};
}

/// Gemma 3: five sliding layers, then one that sees everything, unless the file says otherwise.
Status read_gemma3_pattern(const ModelMetadata& metadata, ModelConfig& config) {
  constexpr std::string_view kSuffix = "attention.sliding_window_pattern";
  const auto value = metadata.file().find(metadata.key(kSuffix));
  if (value && value->type() == GgufValueType::kArray) {
    MEMDECAY_ASSIGN_OR_RETURN(const auto slides,
                              metadata.file().numbers<bool>(metadata.key(kSuffix)));
    if (slides.size() != config.sliding_layers.size())
      return make_status(StatusCode::kCorrupt, "{}: {} has {} values for {} layers",
                         metadata.file().name(), metadata.key(kSuffix), slides.size(),
                         config.layers);
    for (std::size_t i = 0; i < slides.size(); ++i) config.sliding_layers[i] = slides[i];
    return {};
  }
  MEMDECAY_ASSIGN_OR_RETURN(const int pattern,
                            metadata.count_or(kSuffix, 1, kMaxLayers, kGemma3Pattern));
  for (int layer = 0; layer < config.layers; ++layer)
    config.sliding_layers[static_cast<std::size_t>(layer)] = (layer + 1) % pattern != 0;
  return {};
}

Status read_window(const ModelMetadata& metadata, ModelConfig& config) {
  config.sliding_layers.assign(static_cast<std::size_t>(config.layers), false);
  if (config.architecture == ModelArchitecture::kGemma3) {
    MEMDECAY_ASSIGN_OR_RETURN(config.sliding_window,
                              metadata.count("attention.sliding_window", 1, kMaxContext));
    return read_gemma3_pattern(metadata, config);
  }
  MEMDECAY_ASSIGN_OR_RETURN(const int window,
                            metadata.count_or("attention.sliding_window", 0, kMaxContext, 0));
  if (window == 0 || window >= config.context_length) return {};
  // Mistral's window is that of every layer; which of Qwen's layers slide, the metadata cannot say.
  if (config.architecture != ModelArchitecture::kLlama)
    return make_status(StatusCode::kUnsupported,
                       "{}: a sliding window of {} is not supported for {}", metadata.file().name(),
                       window, architecture_name(config.architecture));
  config.sliding_window = window;
  config.sliding_layers.assign(static_cast<std::size_t>(config.layers), true);
  return {};
}

void set_architecture_facts(const GgufFile& file, ModelConfig& config) {
  const auto root = [](int value) { return std::sqrt(static_cast<float>(value)); };
  const bool is_gemma3 = config.architecture == ModelArchitecture::kGemma3;
  config.query_scale = 1.0F / root(config.head_dim);
  // Gemma 3 27B scales by the embedding's share of a head; no key says so.
  if (is_gemma3 && config.layers == kGemma3LargestLayers)
    config.query_scale = 1.0F / root(config.embedding_length / config.heads);
  config.embedding_scale = is_gemma3 ? root(config.embedding_length) : 1.0F;
  config.activation = is_gemma3 ? GateActivation::kGeluTanh : GateActivation::kSilu;
  config.has_qk_norm = is_gemma3 || config.architecture == ModelArchitecture::kQwen3;
  config.has_post_norms = is_gemma3;
  config.has_qkv_bias = config.architecture == ModelArchitecture::kQwen2 ||
                        file.find_tensor("blk.0.attn_q.bias").has_value();
  config.has_tied_output = !file.find_tensor("output.weight").has_value();
}

}  // namespace

std::string_view architecture_name(ModelArchitecture architecture) {
  return kArchitectures[static_cast<std::size_t>(architecture)].second;
}

Result<ModelConfig> ModelConfig::read(const GgufFile& file) {
  ModelConfig config;
  MEMDECAY_ASSIGN_OR_RETURN(config.architecture, read_architecture(file));
  MEMDECAY_ASSIGN_OR_RETURN(const auto name, file.optional<std::string_view>("general.name"));
  config.name = std::string(name.value_or(""));
  const ModelMetadata metadata(file, architecture_name(config.architecture));
  MEMDECAY_RETURN_IF_ERROR(metadata.refuse_unknown_computation());
  MEMDECAY_RETURN_IF_ERROR(read_sizes(metadata, config));
  MEMDECAY_RETURN_IF_ERROR(read_vocabulary(metadata, config));
  MEMDECAY_ASSIGN_OR_RETURN(const auto epsilon,
                            metadata.number("attention.layer_norm_rms_epsilon", 1e-12, 0.1));
  if (!epsilon)
    return make_status(StatusCode::kCorrupt, "{}: the key {} is missing", file.name(),
                       metadata.key("attention.layer_norm_rms_epsilon"));
  config.rms_epsilon = static_cast<float>(*epsilon);
  MEMDECAY_RETURN_IF_ERROR(read_rope(metadata, config));
  MEMDECAY_RETURN_IF_ERROR(read_window(metadata, config));
  MEMDECAY_ASSIGN_OR_RETURN(const auto softcap, metadata.number("final_logit_softcapping", 0, 1e6));
  config.final_logit_softcap = static_cast<float>(softcap.value_or(0));
  set_architecture_facts(file, config);
  return config;
}

}  // namespace memdecay
