#include "eval/calibration/decay_study.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/extend_without_logits.h"
#include "engine/memory/prompt_labels.h"
#include "engine/prompt/prompt.h"
#include "eval/calibration/use_recorder.h"
#include "eval/runs/template_fit.h"

namespace memdecay {
namespace {

/// Large enough that nothing is ever evicted, and yet a budget: pages begin at the regions'
/// borders.
constexpr std::uint64_t kPlenty = std::uint64_t{1} << 50;

}  // namespace

Result<std::vector<UseRecord>> record_uses(Engine& engine, const ChainedSession& session,
                                           const DecayStudyOptions& options,
                                           const std::function<void(double)>& on_progress) {
  const auto conversation = fit_to_template(engine.model(), session.conversation);
  MEMDECAY_ASSIGN_OR_RETURN(const Prompt prompt,
                            render_prompt(engine.model(), conversation, false));
  MEMDECAY_ASSIGN_OR_RETURN(PromptLabels labels, label_prompt(prompt));
  const std::vector<QueryPhase> phases = labels.phases;
  UseRecorder* recorder = nullptr;
  SessionOptions memory;
  memory.budget_bytes = kPlenty;
  memory.packs_pages = false;
  memory.kv_forms = KvForms::kF16;
  memory.own_policy = [&](const PolicyOptions&) {
    auto own = std::make_unique<UseRecorder>(options.looks_above);
    recorder = own.get();
    return EvictionPolicyHandle(std::move(own));
  };
  MEMDECAY_ASSIGN_OR_RETURN(const auto played, engine.open_session(memory));
  if (recorder == nullptr) {
    return Status(StatusCode::kUnsupported,
                  "this model has no layer that sees the whole conversation, so nothing of it is "
                  "ever forgotten by choice");
  }
  engine.label(*played, std::move(labels));
  const std::span<const TokenId> tokens(prompt.tokens);
  for (std::size_t at = 0; at < tokens.size();) {
    std::size_t end = at + 1;
    const std::size_t most =
        std::min(tokens.size(), at + static_cast<std::size_t>(std::max(1, options.chunk_tokens)));
    while (end < most && phases[end] == phases[at]) ++end;
    MEMDECAY_RETURN_IF_ERROR(extend_without_logits(engine, *played, tokens.subspan(at, end - at)));
    at = end;
    on_progress(static_cast<double>(at) / static_cast<double>(tokens.size()));
  }
  return recorder->records();
}

}  // namespace memdecay
