#include "model/transformer/transformer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/check.h"

namespace memdecay {
namespace {

std::size_t to_size(int value) {
  return static_cast<std::size_t>(value);
}

/// Panels of one unit of work: small enough that no member waits long for another, large enough
/// that the four streams of a matrix-vector product (kernels/matmul.h) run for a while.
constexpr int kPanelsPerUnit = 8;

}  // namespace

Result<std::unique_ptr<Transformer>> Transformer::create(const ModelConfig& config,
                                                         const ModelWeights& weights,
                                                         const LayerGroups& groups,
                                                         const KernelTable& kernels,
                                                         ThreadTeam& team, const Options& options) {
  MEMDECAY_ASSIGN_OR_RETURN(
      Workspace workspace,
      Workspace::create(config, kernels, options.max_rows, options.max_logit_rows));
  return std::unique_ptr<Transformer>(
      new Transformer(config, weights, groups, kernels, team, std::move(workspace)));
}

Transformer::Transformer(const ModelConfig& config, const ModelWeights& weights,
                         const LayerGroups& groups, const KernelTable& kernels, ThreadTeam& team,
                         Workspace workspace)
    : config_(config),
      weights_(weights),
      groups_(groups),
      kernels_(kernels),
      team_(team),
      workspace_(std::move(workspace)),
      shifted_queries_(config, weights.rope_divisors, kernels),
      attention_(groups, config.heads, kernels, workspace_, shifted_queries_, team.size()),
      probe_(groups, config.heads, kernels, workspace_, shifted_queries_, team.size()),
      angles_(config, weights.rope_divisors) {}

Status Transformer::forward(const ForwardInput& input) {
  rows_ = static_cast<int>(input.tokens.size());
  MEMDECAY_CHECK(rows_ >= 1 && rows_ <= workspace_.max_rows);
  int row = 0;
  for (const SequenceSlice& slice : input.slices) {
    MEMDECAY_CHECK(slice.first_row == row && slice.views.size() == groups_.groups.size());
    for (int i = 0; i < slice.rows; ++i, ++row) {
      workspace_.positions[to_size(row)] = slice.first_position + i;
      workspace_.virtual_places[to_size(row)] = slice.first_position + i - slice.rope_offset;
    }
  }
  MEMDECAY_CHECK(row == rows_);
  angles_.compute(std::span(workspace_.virtual_places).first(to_size(rows_)),
                  std::span(workspace_.positions).first(to_size(rows_)));
  shifted_queries_.begin(input, groups_);
  MEMDECAY_RETURN_IF_ERROR(attention_.begin(input));
  MEMDECAY_RETURN_IF_ERROR(probe_.begin(input));
  team_.run([&](Member& member) { run_layers(member, input); });
  attention_.end();
  probe_.end();
  return Status();
}

void Transformer::run_layers(Member& member, const ForwardInput& input) {
  embed(member, input);
  member.barrier();
  for (int layer = 0; layer < config_.layers; ++layer) {
    attention_block(member, layer);
    feed_forward_block(member, layer);
  }
}

void Transformer::embed(Member& member, const ForwardInput& input) {
  const int width = config_.embedding_length;
  const auto share = member.share(rows_);
  for (int row = share.begin; row < share.end; ++row) {
    const std::span<float> out(workspace_.x + std::ptrdiff_t{row} * width, to_size(width));
    unpack_row(weights_.embedding, input.tokens[to_size(row)], out);
    if (config_.embedding_scale == 1.0F) continue;
    for (float& value : out) value *= config_.embedding_scale;
  }
}

void Transformer::attention_block(Member& member, int layer) {
  const LayerWeights& w = weights_.layers[to_size(layer)];
  norm_columns(member, workspace_.x, w.attention_norm, rows_);
  member.barrier();
  const std::array<Product, 3> qkv = {Product{&w.q, workspace_.q, w.q_bias, false},
                                      Product{&w.k, workspace_.k, w.k_bias, false},
                                      Product{&w.v, workspace_.v, w.v_bias, false}};
  multiply(member, qkv, workspace_.normed, rows_);
  member.barrier();
  rotate(member, layer);
  member.barrier();
  attention_.store(member, layer);
  member.barrier();
  attention_.attend(member, layer);
  member.barrier();
  if (attention_.needs_merge(layer)) {
    attention_.merge(member, layer);
    member.barrier();
  }
  if (probe_.probes(layer)) {
    probe_.attend_pages(member, layer);
    member.barrier();
    probe_.weigh_pages(member, layer);
  }
  quantize_columns(member, workspace_.attended, config_.heads * config_.head_dim, rows_);
  member.barrier();
  const bool post_norm = w.post_attention_norm != nullptr;
  const Product output{&w.attention_output, post_norm ? workspace_.normed : workspace_.x, nullptr,
                       !post_norm};
  multiply(member, std::span(&output, 1), workspace_.attended, rows_);
  member.barrier();
  if (post_norm) add_normed(member, w.post_attention_norm);
}

void Transformer::feed_forward_block(Member& member, int layer) {
  const LayerWeights& w = weights_.layers[to_size(layer)];
  norm_columns(member, workspace_.x, w.ffn_norm, rows_);
  member.barrier();
  const std::array<Product, 2> gate_up = {Product{&w.gate, workspace_.gate, nullptr, false},
                                          Product{&w.up, workspace_.up, nullptr, false}};
  multiply(member, gate_up, workspace_.normed, rows_);
  member.barrier();
  activate(member);
  member.barrier();
  const bool post_norm = w.post_ffn_norm != nullptr;
  const Product down{&w.down, post_norm ? workspace_.normed : workspace_.x, nullptr, !post_norm};
  multiply(member, std::span(&down, 1), workspace_.gate, rows_);
  member.barrier();
  if (post_norm) add_normed(member, w.post_ffn_norm);
}

void Transformer::rotate(Member& member, int layer) {
  const LayerWeights& w = weights_.layers[to_size(layer)];
  const int set = config_.is_sliding(layer) ? 1 : 0;
  const float query_scale = config_.query_scale * std::numbers::log2e_v<float>;
  const auto share = member.share(rows_);
  const auto norm_and_rotate = [&](float* x, int heads, const float* norm, float scale, int row) {
    for (int head = 0; norm != nullptr && head < heads; ++head) {
      float* values = x + std::ptrdiff_t{head} * config_.head_dim;
      kernels_.rms_norm({values, norm, values, config_.head_dim, config_.rms_epsilon});
    }
    kernels_.rope({x, heads, config_.head_dim, angles_.pairs(),
                   config_.rope.order == RopeOrder::kInterleaved ? RopePairing::kInterleaved
                                                                 : RopePairing::kHalves,
                   angles_.cos(set, row), angles_.sin(set, row), scale});
  };
  for (int row = share.begin; row < share.end; ++row) {
    const std::ptrdiff_t width = std::ptrdiff_t{config_.head_dim};
    norm_and_rotate(workspace_.q + row * config_.heads * width, config_.heads, w.q_norm,
                    query_scale, row);
    norm_and_rotate(workspace_.k + row * config_.kv_heads * width, config_.kv_heads, w.k_norm, 1.0F,
                    row);
  }
}

void Transformer::activate(Member& member) {
  const int width = config_.feed_forward_length;
  const auto share = member.share(rows_);
  if (share.begin >= share.end) return;
  const std::ptrdiff_t offset = std::ptrdiff_t{share.begin} * width;
  const GatedArgs args{workspace_.gate + offset, workspace_.up + offset, workspace_.gate + offset,
                       to_size(share.end - share.begin) * to_size(width)};
  config_.activation == GateActivation::kSilu ? kernels_.swiglu(args) : kernels_.geglu(args);
  quantize_columns(member, workspace_.gate, width, rows_);
}

void Transformer::norm_columns(Member& member, const float* source, const float* weight,
                               int columns) {
  const int width = config_.embedding_length;
  const auto share = member.share(columns);
  for (int column = share.begin; column < share.end; ++column) {
    const std::ptrdiff_t offset = std::ptrdiff_t{column} * width;
    kernels_.rms_norm(
        {source + offset, weight, workspace_.normed + offset, width, config_.rms_epsilon});
  }
  quantize_columns(member, workspace_.normed, width, columns);
}

void Transformer::quantize_columns(Member& member, const float* source, int k, int columns) {
  if (!weights_.needs_quantized_activations) return;
  const auto share = member.share(columns);
  QuantizeActivationsArgs args;
  args.x = source;
  args.ld_x = k;
  args.col_begin = share.begin;
  args.col_end = share.end;
  args.out = {k, columns, workspace_.quantized};
  if (args.col_begin < args.col_end) kernels_.quantize_activations(args);
}

void Transformer::add_normed(Member& member, const float* weight) {
  const int width = config_.embedding_length;
  const auto share = member.share(rows_);
  for (int row = share.begin; row < share.end; ++row) {
    float* x = workspace_.x + std::ptrdiff_t{row} * width;
    float* y = workspace_.normed + std::ptrdiff_t{row} * width;
    kernels_.rms_norm({y, weight, y, width, config_.rms_epsilon});
    for (int i = 0; i < width; ++i) x[i] += y[i];
  }
  member.barrier();
}

void Transformer::multiply(Member& member, std::span<const Product> products, const float* input,
                           int columns) {
  int units = 0;
  for (const Product& product : products)
    units += (product.weights->panel_count() + kPanelsPerUnit - 1) / kPanelsPerUnit;
  for (int unit = member.take(); unit < units; unit = member.take()) {
    int local = unit;
    const Product* product = products.data();
    for (; local >= (product->weights->panel_count() + kPanelsPerUnit - 1) / kPanelsPerUnit;
         ++product) {
      local -= (product->weights->panel_count() + kPanelsPerUnit - 1) / kPanelsPerUnit;
    }
    const int begin = local * kPanelsPerUnit;
    multiply_panels(*product, input, columns, begin,
                    std::min(product->weights->panel_count(), begin + kPanelsPerUnit));
  }
}

void Transformer::multiply_panels(const Product& product, const float* input, int columns,
                                  int panel_begin, int panel_end) {
  const PanelMatrix& weights = *product.weights;
  MatMulArgs args;
  args.weights = &weights;
  args.panel_begin = panel_begin;
  args.panel_end = panel_end;
  args.quantized = {weights.k, columns, workspace_.quantized};
  args.x = input;
  args.ld_x = weights.k;
  args.col_end = columns;
  args.out = product.out;
  args.ld_out = weights.rows;
  args.accumulate = product.accumulate;
  if (product.bias != nullptr) {
    const int row_begin = panel_begin * kPanelRows;
    const int row_end = std::min(weights.rows, panel_end * kPanelRows);
    for (int column = 0; column < columns; ++column) {
      float* out = product.out + std::ptrdiff_t{column} * weights.rows;
      for (int row = row_begin; row < row_end; ++row) {
        out[row] = product.accumulate ? out[row] + product.bias[row] : product.bias[row];
      }
    }
    args.accumulate = true;
  }
  kernels_.matmul(args);
}

void Transformer::soft_cap(Member& member, int columns) {
  const float cap = config_.final_logit_softcap;
  if (cap <= 0.0F) return;
  const auto share = member.share(columns);
  float* begin = workspace_.logits + std::ptrdiff_t{share.begin} * config_.vocab_size;
  float* end = workspace_.logits + std::ptrdiff_t{share.end} * config_.vocab_size;
  for (float* logit = begin; logit < end; ++logit) *logit = cap * std::tanh(*logit / cap);
}

std::span<const float> Transformer::logits(std::span<const int> rows) {
  const int columns = static_cast<int>(rows.size());
  MEMDECAY_CHECK(columns >= 1 && columns <= workspace_.max_logit_rows);
  const int width = config_.embedding_length;
  const Product head{&weights_.output, workspace_.logits, nullptr, false};
  team_.run([&](Member& member) {
    const auto share = member.share(columns);
    for (int column = share.begin; column < share.end; ++column) {
      const float* x = workspace_.x + std::ptrdiff_t{rows[to_size(column)]} * width;
      std::copy_n(x, width, workspace_.head_input + std::ptrdiff_t{column} * width);
    }
    member.barrier();
    norm_columns(member, workspace_.head_input, weights_.output_norm, columns);
    member.barrier();
    multiply(member, std::span(&head, 1), workspace_.normed, columns);
    member.barrier();
    soft_cap(member, columns);
  });
  return {workspace_.logits, to_size(columns) * to_size(config_.vocab_size)};
}

}  // namespace memdecay
