#include "eval/play/played_turn.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "eval/metrics/bootstrap.h"
#include "eval/metrics/region_fates.h"

namespace memdecay {
namespace {

/// A pinned token is not protected where its page was refused the pin, or has gone for want of it.
void count_pins(const SessionMemory& memory, bool protects_prefix, PlayedTurn& turn) {
  for (const RegionSpan& span : turn.labels.regions) {
    const bool pinned = span.pinned || (protects_prefix && span.region == Region::kSystem);
    if (!pinned) continue;
    turn.pinned_tokens += span.tokens.size();
    turn.pins_refused_tokens += span.tokens.size() - tokens_within(span.tokens, turn.kept);
  }
  for (const SessionMemory::Page& page : memory.pages())
    if (memory.explain(page).pin_refused) turn.pins_refused_tokens += page.filled;
  // A page counts as what most of it is, so its borders may be others than the labels'.
  turn.pins_refused_tokens = std::min(turn.pins_refused_tokens, turn.pinned_tokens);
}

}  // namespace

double PlayedTurn::ms_per_token() const {
  if (step_ns.empty()) return 0;
  const auto sum = std::accumulate(step_ns.begin(), step_ns.end(), std::int64_t{0});
  return static_cast<double>(sum) / static_cast<double>(step_ns.size()) / 1e6;
}

double PlayedTurn::step_ms(double share) const {
  if (step_ns.empty()) return 0;
  return quantile_of({step_ns.begin(), step_ns.end()}, share) / 1e6;
}

PlayedTurn turn_of(const GenerationResult& result, PromptLabels labels) {
  PlayedTurn turn;
  turn.labels = std::move(labels);
  turn.reused_tokens = result.reused_tokens;
  turn.cached_tokens = result.cached_tokens;
  turn.recomputed_tokens = result.recomputed_tokens;
  turn.new_tokens = result.prompt_tokens - result.reused_tokens - result.recomputed_tokens;
  turn.computed_tokens = result.computed_tokens;
  turn.generated_tokens = static_cast<int>(result.tokens.size());
  turn.agreed_tokens = turn.generated_tokens;
  turn.evicted_tokens = result.evicted_tokens;
  turn.prompt_ns = result.prompt_ns;
  turn.step_ns = result.step_ns;
  turn.text = result.text;
  return turn;
}

TurnMeter::TurnMeter(Engine& engine, const Session& session) : engine_(engine), session_(session) {
  engine.reset_peak_bytes();
}

void TurnMeter::read(PlayedTurn& turn) const {
  const KvBudget& budget = engine_.cache().budget();
  turn.live_bytes = budget.current_bytes();
  turn.peak_bytes = budget.peak_bytes();
  turn.kept = engine_.held_tokens(session_);
  const SessionMemory* memory = session_.memory();
  if (memory == nullptr) return;
  count_pins(*memory, engine_.options().protect_prefix, turn);
}

}  // namespace memdecay
