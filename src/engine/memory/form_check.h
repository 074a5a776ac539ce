// FormCheck: what each form of pages costs one model, measured on a short fixed text.
//
// The text is read with fp16 pages; then its last kJudgedTokens are computed again over the same
// pages in every other form, and the model's predictions compared. The first part's pages also say
// how large the rounding errors of this model's keys and values are. So it is known what a
// demotion costs here, and a model whose keys do not survive int4 is noticed: k8v4 differs from
// int4 in nothing but the keys' bits, so a large divergence that only int4 has is the keys'.
//
// It runs in a cache of its own (about 320 tokens in fp16 and once more in each form), which is
// gone afterwards. Deterministic for one model, machine and kernel table. Cost: 500 rows of forward
// passes. One thread, the engine's.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/model.h"
#include "kernels/kernel_table.h"
#include "model/transformer/layer_groups.h"
#include "model/transformer/transformer.h"
#include "policy/page_meta.h"

namespace memdecay {

/// Of each form; those of fp16 are 0.
struct FormReport {
  /// Relative error of keys and values (convert_kv_page), the mean over the text's pages.
  std::array<float, kPageFormCount> rounding_error = {};
  /// KL divergence from the predictions with fp16 pages, nats a token.
  std::array<double, kPageFormCount> divergence = {};

  /// Whether int4 may be chosen for this model by the engine itself.
  bool keys_survive_int4() const;
};

inline constexpr int kCheckedTokens = 256;  ///< whose pages change their form
inline constexpr int kJudgedTokens = 64;    ///< whose predictions are compared

/// The text, as so many tokens of the model: instructions, a call, its result, an answer.
std::vector<TokenId> form_check_tokens(const Model& model);

/// kResourceExhausted where there is no memory. REQUIRES: a layer group without a window; tokens
/// are at least kCheckedTokens + kJudgedTokens.
Result<FormReport> measure_forms(const Model& model, Transformer& transformer,
                                 const LayerGroups& groups, std::span<const TokenId> tokens);

}  // namespace memdecay
