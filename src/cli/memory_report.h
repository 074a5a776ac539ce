// The memory of an engine and of a turn, in one line for people and as JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.h"

namespace memdecay {

/// "1,234 tokens in 39 pages, 28.9 MiB of 32.0 MiB, 98.9 % of slots filled"
std::string describe_memory(const Engine& engine, const Session& session);

/// "1 thread", "2 threads"
std::string describe_threads(const Engine& engine);

/// {"tokens", "pages", "live_bytes", "peak_bytes", "budget_bytes" (null: unlimited), "utilisation"}
nlohmann::ordered_json memory_json(const Engine& engine, const Session& session);

/// {"by_state": {"fp16": n, ..., "gone": n}, "by_region": {"system": n, ...}}: the session's pages
/// that a policy may judge; regions are known only where there is a policy.
nlohmann::ordered_json pages_json(const Engine& engine, const Session& session);

/// [[first position, tokens, score, "droppable" or what protects it], ...] of the pages that are
/// held, as the session's policy sees them now; empty where there is none.
nlohmann::ordered_json page_scores_json(const Session& session);

/// Tokens a second of a result's prompt (computed part) and decode phases; 0 where nothing was
/// measured.
double prompt_tokens_per_second(const GenerationResult& result);
double decode_tokens_per_second(const GenerationResult& result);

}  // namespace memdecay
