// The memory of an engine and of a turn, in one line for people and as JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.h"
#include "eval/play/played_turn.h"

namespace memdecay {

/// "1 thread", "2 threads"
std::string describe_threads(const Engine& engine);

/// {"tokens", "pages", "live_bytes", "peak_bytes", "budget_bytes" (null: unlimited), "utilisation"}
nlohmann::ordered_json memory_json(const Engine& engine, const Session& session);

/// {"by_state": {"fp16": n, ..., "gone": n}, "by_region": {"system": n, ...}}: the session's pages
/// in layers without a window; without such layers all its pages, and no regions. `labels` are of
/// its tokens, as far as its prompt goes.
nlohmann::ordered_json pages_json(const Engine& engine, const Session& session,
                                  const PromptLabels& labels);

/// The same as play's JSON lines in words, in two parts.
/// "34 new, 120 reused, 46 computed, 0 recomputed, 12 generated, 0 evicted tokens; prompt 85 ms,
/// 21.30 ms a token"
std::string describe_turn(const PlayedTurn& turn);
/// "12.3 MiB live, 13.0 MiB at most of 32.0 MiB; pages: 12 fp16, 0 gone; 3 system, 9 recent"
std::string describe_pages(const Engine& engine, const Session& session, const PlayedTurn& turn);

/// Says on standard error, once a session, that pins were refused.
class RefusedPinsNote {
 public:
  void tell(const PlayedTurn& turn);

 private:
  bool told_ = false;
};

/// [[first position, tokens, score, "droppable" or what protects it], ...] of the pages that are
/// held, as the session's policy sees them now; empty where there is none.
nlohmann::ordered_json page_scores_json(const Session& session);

/// Tokens a second of a result's prompt (computed part) and decode phases; 0 where nothing was
/// measured.
double prompt_tokens_per_second(const GenerationResult& result);
double decode_tokens_per_second(const GenerationResult& result);

}  // namespace memdecay
