// Workspace: the buffers of a forward pass, all sized once for the largest batch. Shapes are stated
// here and nowhere else.
//
// Rows are batch rows. Owned by one Transformer; members of its team write disjoint parts between
// barriers.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "model/gguf/model_config.h"
#include "sys/memory.h"

namespace memdecay {

struct Workspace {
  /// REQUIRES: max_rows >= 1.
  static Result<Workspace> create(const ModelConfig& config, const KernelTable& kernels,
                                  int max_rows, int max_logit_rows);

  int max_rows = 0;
  int max_logit_rows = 0;

  float* x = nullptr;           ///< [rows, embedding_length]: the residual stream
  float* normed = nullptr;      ///< [rows, embedding_length]: input of the matrices when they want
                                ///< floats; sub-layer outputs
  float* q = nullptr;           ///< [rows, heads, head_dim]
  float* k = nullptr;           ///< [rows, kv_heads, head_dim]
  float* v = nullptr;           ///< [rows, kv_heads, head_dim]
  float* attended = nullptr;    ///< [rows, heads, head_dim]
  float* gate = nullptr;        ///< [rows, feed_forward_length]
  float* up = nullptr;          ///< [rows, feed_forward_length]
  float* logits = nullptr;      ///< [logit rows, vocab_size]
  float* head_input = nullptr;  ///< [logit rows, embedding_length]
  std::byte* quantized = nullptr;  ///< activations of the widest matrix input, for max_rows columns
  std::vector<Position> positions;       ///< [rows]
  std::vector<Position> virtual_places;  ///< [rows]: positions less what was closed before them

  AnonymousMemory memory;
};

}  // namespace memdecay
