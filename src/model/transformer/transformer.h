// Transformer: tokens in, hidden states and logits out, over paged keys and values.
//
// One forward() walks every layer once with the whole team of threads. A layer is a few phases
// between barriers:
//
//   norm, quantize | q k v | rope, store K V | attention | (merge) | (probe) | quantize |
//   output projection + residual, norm, quantize | gate, up | activation, quantize |
//   down projection + residual
//
// Determinism: a token's hidden state and logits depend on its own sequence only: not on the number
// of threads, on how a prompt was cut into passes, on who else is in the batch, nor on where pages
// lie. The same bits come out. Knows no cache policy: it writes K and V where the views say and
// reads what they show. A slice may ask for evidence about its pages (PageProbe), which costs time
// and changes no bit of the results. Pages may have moved virtually (KvPageRef::rope_shift): then
// queries are turned instead of keys.
//
// Methods: pre-norm transformer with grouped-query attention (Ainslie et al. 2023), rotary
// positions (Su et al. 2021), gated feed-forward (Shazeer 2020). One caller at a time; results stay
// valid until the next forward().
#pragma once

#include <memory>

#include "kernels/kernel_table.h"
#include "model/transformer/deletion_probe.h"
#include "model/transformer/forward_input.h"
#include "model/transformer/layer_groups.h"
#include "model/transformer/model_weights.h"
#include "model/transformer/paged_attention.h"
#include "model/transformer/rope_angles.h"
#include "model/transformer/shifted_queries.h"
#include "model/transformer/workspace.h"
#include "sys/thread_team.h"

namespace memdecay {

class Transformer {
 public:
  struct Options {
    int max_rows = 512;       ///< largest batch
    int max_logit_rows = 64;  ///< largest logits() call
  };

  /// All references outlive the transformer.
  static Result<std::unique_ptr<Transformer>> create(const ModelConfig& config,
                                                     const ModelWeights& weights,
                                                     const LayerGroups& groups,
                                                     const KernelTable& kernels, ThreadTeam& team,
                                                     const Options& options);

  int max_rows() const { return workspace_.max_rows; }
  int max_logit_rows() const { return workspace_.max_logit_rows; }

  /// Computes the hidden states of all rows and writes their keys and values. Fails only for want
  /// of memory. REQUIRES: 1 <= rows <= max_rows(); tokens in range; slices cover the rows; views
  /// have room (see SequenceSlice).
  Status forward(const ForwardInput& input);

  /// Logits of some rows of the last forward(): [rows.size(), vocab_size], valid until the next
  /// call. REQUIRES: 1 <= rows.size() <= max_logit_rows().
  std::span<const float> logits(std::span<const int> rows);

 private:
  using Member = ThreadTeam::Member;
  /// One matrix of a matmul phase. bias is added when not null; accumulate adds to what out holds.
  struct Product {
    const PanelMatrix* weights;
    float* out;
    const float* bias;
    bool accumulate;
  };

  Transformer(const ModelConfig& config, const ModelWeights& weights, const LayerGroups& groups,
              const KernelTable& kernels, ThreadTeam& team, Workspace workspace);

  void run_layers(Member& member, const ForwardInput& input);
  void embed(Member& member, const ForwardInput& input);
  void attention_block(Member& member, int layer);
  void feed_forward_block(Member& member, int layer);
  void rotate(Member& member, int layer);
  void activate(Member& member);
  void soft_cap(Member& member, int columns);

  /// normed = rms_norm(source), then quantized; for columns split among the members. Ends without a
  /// barrier.
  void norm_columns(Member& member, const float* source, const float* weight, int columns);
  /// Quantizes columns of `source` [columns, k] for the matrices that follow.
  void quantize_columns(Member& member, const float* source, int k, int columns);
  /// x += rms_norm(sub-layer output in normed), for models with norms after the sub-layers.
  void add_normed(Member& member, const float* weight);
  /// All products of one input [columns, k]; panels are taken from the phase's counter. Ends
  /// without a barrier.
  void multiply(Member& member, std::span<const Product> products, const float* input, int columns);
  void multiply_panels(const Product& product, const float* input, int columns, int panel_begin,
                       int panel_end);

  const ModelConfig& config_;
  const ModelWeights& weights_;
  const LayerGroups& groups_;
  const KernelTable& kernels_;
  ThreadTeam& team_;
  Workspace workspace_;
  ShiftedQueries shifted_queries_;
  PagedAttention attention_;
  DeletionProbe probe_;
  RopeAngles angles_;
  int rows_ = 0;
};

}  // namespace memdecay
