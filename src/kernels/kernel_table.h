// KernelTable: every fast function of one instruction set, chosen once at run time.
//
// The scalar table is the truth that the others are tested against; each instruction set has a
// folder with the same file names (scalar/, avx2/, avx512/; neon/ has its place). All functions are
// pure and may run on any thread.
#pragma once

#include <cstddef>
#include <span>

#include "core/status.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"

namespace memdecay {

struct KernelTable {
  const char* name = nullptr;  ///< "scalar", "avx2", "avx512"

  // kernels/<isa>/matmul.cc
  std::size_t (*activation_bytes)(int k, int cols) = nullptr;
  void (*quantize_activations)(const QuantizeActivationsArgs&) = nullptr;
  void (*matmul)(const MatMulArgs&) = nullptr;

  // kernels/<isa>/attention.cc
  std::size_t (*attention_scratch_bytes)(const KvPageLayout&, int rows, int group) = nullptr;
  void (*attention)(const AttentionArgs&) = nullptr;
  void (*merge_attention)(const MergeAttentionArgs&) = nullptr;
  void (*store_kv)(const StoreKvArgs&) = nullptr;

  // kernels/<isa>/elementwise.cc
  void (*rms_norm)(const RmsNormArgs&) = nullptr;
  void (*rope)(const RopeArgs&) = nullptr;
  void (*swiglu)(const GatedArgs&) = nullptr;  ///< silu(gate) * up
  void (*geglu)(const GatedArgs&) =
      nullptr;  ///< gelu(gate) * up, tanh form (Hendrycks and Gimpel 2016)
  float (*max_value)(const float* x, int n) = nullptr;  ///< REQUIRES: n >= 1
  /// The largest of n floats >= 0 (0 if none), read as fast as this table can: the bandwidth probe.
  /// n in units of 64.
  float (*read_streams)(const float* x, std::size_t n) = nullptr;
  double (*sum_exp)(const float* x, int n, float max) = nullptr;  ///< sum of exp(x - max)
  void (*top_k)(const TopKArgs&) = nullptr;
};

/// The scalar table.
const KernelTable& scalar_kernels();
/// Every table that this processor can run, scalar first, fastest last.
std::span<const KernelTable* const> supported_kernels();
/// The fastest supported table, or the one that the environment variable MEMDECAY_KERNELS names.
const KernelTable& best_kernels();
/// kInvalidArgument where MEMDECAY_KERNELS names no table that this processor can run: who starts a
/// program asks before best_kernels(), which then takes the fastest.
Status check_kernels_variable();

}  // namespace memdecay
