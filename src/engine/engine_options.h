// EngineOptions: everything that a user may set about an engine, with its default and unit.
#pragma once

#include <cstdint>
#include <string>

#include "core/paged_kv.h"
#include "kv/kv_budget.h"
#include "model/transformer/model_weights.h"

namespace memdecay {

struct EngineOptions {
  std::string model_path;  ///< a GGUF file
  int threads = 0;         ///< 0: the cores this process may use
  Precision precision = Precision::kFast;
  int page_tokens = 32;  ///< 16, 32 or 64
  std::uint64_t kv_budget_bytes = KvBudget::kUnlimited;
  int context_tokens = 0;  ///< longest sequence; 0: what the model was trained for
  int batch_tokens = 256;  ///< largest forward pass
  int chunk_tokens = 128;  ///< most prompt tokens in a pass while other requests stream

  /// Tokens that sliding windows keep beyond what the next query sees, so that a history whose last
  /// tokens changed is cut back, not computed anew (docs/decisions/0240).
  static constexpr int kCutBackTokens = 64;

  /// kInvalidArgument names the field that is out of range.
  Status validate() const;
};

}  // namespace memdecay
