#include "cli/memory_report.h"

#include "core/units.h"

namespace memdecay {
namespace {

int page_count(const Engine& engine, const Session& session) {
  std::size_t pages = 0;
  for (std::size_t group = 0; group < engine.cache().groups().size(); ++group) {
    pages += session.sequence().table(LayerGroupId(static_cast<int>(group))).pages().size();
  }
  return static_cast<int>(pages);
}

std::uint64_t session_bytes(const Session& session) {
  const SequenceMemory memory = session.sequence().memory();
  return memory.exclusive_bytes + memory.shared_bytes + memory.table_bytes;
}

double per_second(int tokens, std::int64_t nanoseconds) {
  return nanoseconds > 0 ? static_cast<double>(tokens) * 1e9 / static_cast<double>(nanoseconds)
                         : 0.0;
}

}  // namespace

std::string describe_memory(const Engine& engine, const Session& session) {
  const KvBudget& budget = engine.cache().budget();
  const std::string limit = budget.limit_bytes() == KvBudget::kUnlimited
                                ? ""
                                : " of " + format_bytes(budget.limit_bytes());
  const int pages = page_count(engine, session);
  return fmt::format("{} tokens in {} page{}, {}{}, {:.1f} % of slots filled",
                     session.tokens().size(), pages, pages == 1 ? "" : "s",
                     format_bytes(session_bytes(session)), limit,
                     100.0 * engine.cache().usage().utilisation());
}

std::string describe_threads(const Engine& engine) {
  return fmt::format("{} thread{}", engine.threads(), engine.threads() == 1 ? "" : "s");
}

nlohmann::ordered_json memory_json(const Engine& engine, const Session& session) {
  const KvBudget& budget = engine.cache().budget();
  nlohmann::ordered_json json;
  json["tokens"] = session.tokens().size();
  json["pages"] = page_count(engine, session);
  json["live_bytes"] = budget.current_bytes();
  json["peak_bytes"] = budget.peak_bytes();
  if (budget.limit_bytes() == KvBudget::kUnlimited) {
    json["budget_bytes"] = nullptr;
  } else {
    json["budget_bytes"] = budget.limit_bytes();
  }
  json["utilisation"] = engine.cache().usage().utilisation();
  return json;
}

nlohmann::ordered_json pages_json(const Engine& engine, const Session& session) {
  nlohmann::ordered_json by_state;
  nlohmann::ordered_json by_region = nlohmann::ordered_json::object();
  const SessionMemory* memory = session.memory();
  if (memory == nullptr) {
    by_state[kv_format_name(engine.cache().groups().front().layout.format)] =
        page_count(engine, session);
    by_state["gone"] = 0;
  } else {
    for (const SessionMemory::Page& page : memory->pages()) {
      auto& state = by_state[kv_format_name(page.format)];
      state = state.is_null() ? 1 : state.get<int>() + 1;
      auto& region = by_region[std::string(region_name(memory->meta(page).region))];
      region = region.is_null() ? 1 : region.get<int>() + 1;
    }
    by_state["gone"] = memory->evicted_pages();
  }
  return {{"by_state", std::move(by_state)}, {"by_region", std::move(by_region)}};
}

nlohmann::ordered_json page_scores_json(const Session& session) {
  nlohmann::ordered_json scores = nlohmann::ordered_json::array();
  if (session.memory() == nullptr) return scores;
  for (const SessionMemory::Page& page : session.memory()->pages()) {
    const Explanation why = session.memory()->explain(page);
    scores.push_back({page.first_position, page.filled, why.score, shield_name(why.shield)});
  }
  return scores;
}

double prompt_tokens_per_second(const GenerationResult& result) {
  return per_second(result.prompt_tokens - result.reused_tokens, result.prompt_ns);
}

double decode_tokens_per_second(const GenerationResult& result) {
  return per_second(static_cast<int>(result.tokens.size()) - 1, result.decode_ns);
}

}  // namespace memdecay
