// EngineOptions: everything that a user may set about an engine, with its default and unit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/paged_kv.h"
#include "engine/memory/policy_config.h"
#include "kv/kv_budget.h"
#include "kv/prefix/prefix_difference.h"
#include "model/transformer/model_weights.h"
#include "policy/policies/make_policy.h"
#include "policy/watermarks.h"

namespace memdecay {

/// The forms that pages take once they are written: one for all, or by the plan (kAuto: the ladder
/// fp16, int8, k8v4, int4; without a budget nothing is demoted).
enum class KvForms : std::uint8_t { kAuto, kF16, kInt8, kK8V4, kInt4 };
/// kInvalidArgument, with the names there are, for another name.
Result<KvForms> kv_forms_named(std::string_view name);

/// How one session is kept. What is not set is the engine's.
struct SessionOptions {
  std::string policy;  ///< empty: the engine's
  /// Makes the session's policy where it is none of make_policy.h: for experiments.
  std::function<EvictionPolicyHandle(const PolicyOptions&)> own_policy = {};
  std::optional<KvForms> kv_forms;
  std::optional<bool> protect_prefix;
  /// Most bytes of the session's own evictable pages, beside the engine's budget for all.
  std::uint64_t budget_bytes = KvBudget::kUnlimited;
  /// Small neighbouring pages are laid together between passes.
  bool packs_pages = true;
  /// Nothing is evicted before Engine::shrink() asks for it, whatever this budget says; evidence is
  /// taken meanwhile. The engine's own budget holds all the same.
  bool evicts_when_asked = false;
  std::uint64_t random_seed = 1;  ///< of the policy "random"
  /// Whose prefixes it shares: those of sessions with the same text, and nobody else's.
  std::string cache_salt;
  WatermarkOptions watermarks = {};  ///< of the session's own budget
};

struct EngineOptions {
  std::string model_path;  ///< a GGUF file
  int threads = 0;         ///< 0: the cores this process may use
  Precision precision = Precision::kFast;
  int page_tokens = 32;  ///< 16, 32 or 64
  std::uint64_t kv_budget_bytes = KvBudget::kUnlimited;
  /// Who decides what to forget when the budget is tight: a name of policy/policies/make_policy.h,
  /// with settings behind it or without (policy/policies/policy_spec.h), or "none", which never
  /// evicts. Without a budget nothing is evicted.
  std::string policy = "memdecay";
  PolicyConfig policy_config;   ///< how fast regions are forgotten
  bool protect_prefix = false;  ///< the text before the first user turn is never evicted
  KvForms kv_forms = KvForms::kAuto;
  /// Sessions may bring pages into fewer bits though the engine itself has no budget: each further
  /// form costs a pool's tables.
  bool pools_for_all_forms = false;
  /// Recent dialogue decays faster when tokens come fast. Off, what is forgotten does not depend on
  /// the speed of the machine.
  bool adaptive_decay = true;
  /// Where what was measured about a model is kept from one start to the next (form_report_file.h);
  /// empty: nowhere, it is measured each time.
  std::string measurements_folder;
  /// Told, one sentence each, what the engine does otherwise than was asked. Null: nobody is told.
  std::function<void(const std::string&)> on_note = {};
  int context_tokens = 0;  ///< longest sequence; 0: what the model was trained for
  /// A session that forgets can grow past the context: what evicted pages left is closed virtually,
  /// and the context counts what is left. Off, it counts all tokens.
  bool virtual_positions = true;
  /// Sessions take exact prefixes that others have computed, and leave theirs for others: what
  /// nobody uses any more stays until the budget wants its room, or without a budget
  /// unbudgeted_prefix_bytes is passed.
  bool share_prefixes = true;
  std::uint64_t unbudgeted_prefix_bytes = std::uint64_t{256} << 20;
  /// Who is told why a prefix was not found: only the operator learns what other tenants have.
  PrefixDifference::Audience miss_audience = PrefixDifference::Audience::kTenant;
  int batch_tokens = 256;  ///< largest forward pass
  int chunk_tokens = 128;  ///< most prompt tokens in a pass while other requests stream

  /// Tokens that sliding windows keep beyond what the next query sees, so that a history whose last
  /// tokens changed is cut back, not computed anew (docs/decisions/0240).
  static constexpr int kCutBackTokens = 64;

  /// kInvalidArgument names the field that is out of range.
  Status validate() const;
};

}  // namespace memdecay
