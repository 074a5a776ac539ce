#include "model/transformer/model_weights.h"

#include <algorithm>

#include "core/check.h"

namespace memdecay {
namespace {

// Panels of one unit of repacking: about a megabyte of a small model's rows, so that source pages
// go back early.
constexpr int kPanelsPerUnit = 32;

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

/// Plans every matrix into one arena, then repacks them with the team.
class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, Precision precision, ModelWeights& weights)
      : file_(file), precision_(precision), weights_(weights) {}

  void plan_matrix(const GgufTensor& tensor, PanelMatrix& matrix);
  void load_vector(const GgufTensor& tensor, const float*& place);
  Status repack(ThreadTeam& team);

 private:
  struct Job {
    GgufTensor tensor;
    PanelMatrix* matrix;
    std::size_t offset;  ///< in the arena
  };
  void repack_matrix(ThreadTeam::Member& member, const Job& job) const;
  void repack_unit(const Job& job, int panel_begin, int panel_end) const;
  void repack_exact(const Job& job, int panel, std::span<std::byte> out) const;

  const GgufFile& file_;
  const Precision precision_;
  ModelWeights& weights_;
  std::vector<Job> jobs_;
  std::size_t arena_bytes_ = 0;
};

void WeightLoader::plan_matrix(const GgufTensor& tensor, PanelMatrix& matrix) {
  matrix.type = precision_ == Precision::kExact ? WeightType::kF32 : *tensor.type;
  matrix.rows = static_cast<int>(tensor.rows());
  matrix.k = static_cast<int>(tensor.row_values());
  matrix.panel_bytes = panel_bytes(matrix.type, matrix.k);
  weights_.needs_quantized_activations |= is_quantized(matrix.type);
  jobs_.push_back({tensor, &matrix, arena_bytes_});
  arena_bytes_ += matrix.panel_bytes * to_size(matrix.panel_count());
}

void WeightLoader::load_vector(const GgufTensor& tensor, const float*& place) {
  if (tensor.bytes.empty()) return;
  std::vector<float>& values =
      weights_.vectors.emplace_back(static_cast<std::size_t>(tensor.values()));
  dequantize_weights(*tensor.type, tensor.bytes, values);
  place = values.data();
}

Status WeightLoader::repack(ThreadTeam& team) {
  MEMDECAY_ASSIGN_OR_RETURN(weights_.arena, AnonymousMemory::allocate(arena_bytes_));
  for (const Job& job : jobs_) job.matrix->panels = weights_.arena.data() + job.offset;
  if (file_.mapping() != nullptr) file_.mapping()->advise_sequential();
  team.run([&](ThreadTeam::Member& member) {
    for (const Job& job : jobs_) repack_matrix(member, job);
  });
  return Status();
}

void WeightLoader::repack_matrix(ThreadTeam::Member& member, const Job& job) const {
  const int panels = job.matrix->panel_count();
  const int units = (panels + kPanelsPerUnit - 1) / kPanelsPerUnit;
  for (int unit = member.take(); unit < units; unit = member.take()) {
    repack_unit(job, unit * kPanelsPerUnit, std::min(panels, (unit + 1) * kPanelsPerUnit));
  }
  member.barrier();
}

void WeightLoader::repack_unit(const Job& job, int panel_begin, int panel_end) const {
  const PanelMatrix& matrix = *job.matrix;
  std::byte* arena = weights_.arena.data() + job.offset;
  for (int panel = panel_begin; panel < panel_end; ++panel) {
    const std::span<std::byte> out(arena + to_size(panel) * matrix.panel_bytes, matrix.panel_bytes);
    if (matrix.type == *job.tensor.type) {
      repack_panel(matrix.type, matrix.rows, matrix.k, job.tensor.bytes, panel, out);
    } else {
      repack_exact(job, panel, out);
    }
  }
  if (file_.mapping() == nullptr) return;
  const std::size_t row_bytes = weight_row_bytes(*job.tensor.type, matrix.k);
  const std::size_t begin = to_size(panel_begin * kPanelRows) * row_bytes;
  const std::size_t end = to_size(std::min(matrix.rows, panel_end * kPanelRows)) * row_bytes;
  file_.mapping()->drop(job.tensor.bytes.subspan(begin, end - begin));
}

void WeightLoader::repack_exact(const Job& job, int panel, std::span<std::byte> out) const {
  const PanelMatrix& matrix = *job.matrix;
  const int first = panel * kPanelRows;
  const int rows = std::min(kPanelRows, matrix.rows - first);
  const std::size_t row_bytes = weight_row_bytes(*job.tensor.type, matrix.k);
  std::vector<float> values(to_size(rows) * to_size(matrix.k));
  dequantize_weights(
      *job.tensor.type,
      job.tensor.bytes.subspan(to_size(first) * row_bytes, to_size(rows) * row_bytes), values);
  repack_panel(WeightType::kF32, rows, matrix.k, std::as_bytes(std::span<const float>(values)), 0,
               out);
}

void plan_layer(WeightLoader& loader, const LayerTensors& tensors, LayerWeights& layer) {
  loader.load_vector(tensors.attention_norm, layer.attention_norm);
  loader.load_vector(tensors.query_bias, layer.q_bias);
  loader.load_vector(tensors.key_bias, layer.k_bias);
  loader.load_vector(tensors.value_bias, layer.v_bias);
  loader.load_vector(tensors.query_norm, layer.q_norm);
  loader.load_vector(tensors.key_norm, layer.k_norm);
  loader.load_vector(tensors.post_attention_norm, layer.post_attention_norm);
  loader.load_vector(tensors.feed_forward_norm, layer.ffn_norm);
  loader.load_vector(tensors.post_feed_forward_norm, layer.post_ffn_norm);
  loader.plan_matrix(tensors.query, layer.q);
  loader.plan_matrix(tensors.key, layer.k);
  loader.plan_matrix(tensors.value, layer.v);
  loader.plan_matrix(tensors.attention_output, layer.attention_output);
  loader.plan_matrix(tensors.gate, layer.gate);
  loader.plan_matrix(tensors.up, layer.up);
  loader.plan_matrix(tensors.down, layer.down);
}

std::uint64_t matrix_bytes(const PanelMatrix& matrix) {
  return matrix.panel_bytes * to_size(matrix.panel_count());
}

}  // namespace

Result<std::unique_ptr<ModelWeights>> load_weights(const GgufFile& file, const ModelConfig& config,
                                                   const ModelTensors& tensors, Precision precision,
                                                   ThreadTeam& team) {
  auto weights = std::make_unique<ModelWeights>();
  weights->layers.resize(to_size(config.layers));
  weights->rope_divisors = tensors.rope_divisors();
  WeightLoader loader(file, precision, *weights);
  loader.load_vector(tensors.output_norm(), weights->output_norm);
  loader.plan_matrix(tensors.token_embedding(), weights->embedding);
  if (!config.has_tied_output) loader.plan_matrix(tensors.output(), weights->output);
  for (int layer = 0; layer < config.layers; ++layer) {
    plan_layer(loader, tensors.layer(layer), weights->layers[to_size(layer)]);
  }
  MEMDECAY_RETURN_IF_ERROR(loader.repack(team));
  if (config.has_tied_output) weights->output = weights->embedding;
  weights->bytes_per_token = matrix_bytes(weights->output);
  for (const LayerWeights& layer : weights->layers) {
    for (const PanelMatrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.attention_output,
                                      &layer.gate, &layer.up, &layer.down}) {
      weights->bytes_per_token += matrix_bytes(*matrix);
    }
  }
  return weights;
}

}  // namespace memdecay
