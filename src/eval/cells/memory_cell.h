// MemoryCell: one way of remembering that is measured: a policy, a form of pages, a budget.
//
// A budget is a share of the fp16 bytes of what is not protected, beside the protected prefix's, or
// a number of bytes. Plain values and parsers for what people type; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "engine/engine_options.h"
#include "engine/memory/policy_config.h"

namespace memdecay {

struct CellBudget {
  std::string text;         ///< as asked for
  double share = 0;         ///< in (0, 1], or 0:
  std::uint64_t bytes = 0;  ///< this many
};

struct MemoryCell {
  std::string policy;     ///< a name of make_policy.h, "none", "oracle", and "+prefix" behind it
  std::string kv_format;  ///< "auto", "fp16", "int8", "k8v4", "int4"
  CellBudget budget;      ///< text "" for none
  std::string version =
      {};  ///< of the policy's settings (policy_version.h): scores of others are not its own

  /// The policy with its settings, without "+prefix".
  std::string spec() const;
  /// Whether it knows the session's future (future_errors.h): who runs it gives the policy.
  bool is_oracle() const;
  /// The session options of this cell for a session whose pages take so many bytes in fp16.
  Result<SessionOptions> options(std::uint64_t protected_bytes, std::uint64_t total_bytes) const;
};

/// "25%" or "32MiB". kInvalidArgument says what is wrong.
Result<CellBudget> parse_cell_budget(std::string_view text);
/// Every policy in every form within every budget, each cell once; "none" has no budget, so it
/// stands there once a form, and "all" is every policy, each but memdecay's with +prefix too.
/// `config` is the engine's that will play them: versions are by what it says.
Result<std::vector<MemoryCell>> make_cells(const std::vector<std::string>& policies,
                                           const std::vector<std::string>& kv_formats,
                                           const std::vector<std::string>& budgets,
                                           const PolicyConfig& config);

}  // namespace memdecay
