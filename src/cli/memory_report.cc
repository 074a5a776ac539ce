#include "cli/memory_report.h"

#include "cli/standard_error.h"
#include "core/units.h"
#include "engine/page_regions.h"

namespace memdecay {
namespace {

int page_count(const Engine& engine, const Session& session) {
  std::size_t pages = 0;
  for (std::size_t group = 0; group < engine.cache().groups().size(); ++group) {
    pages += session.sequence().table(LayerGroupId(static_cast<int>(group))).pages().size();
  }
  return static_cast<int>(pages);
}

std::string budget_words(const Engine& engine) {
  const std::uint64_t limit = engine.cache().budget().limit_bytes();
  return limit == KvBudget::kUnlimited ? "" : " of " + format_bytes(limit);
}

double per_second(int tokens, std::int64_t nanoseconds) {
  return nanoseconds > 0 ? static_cast<double>(tokens) * 1e9 / static_cast<double>(nanoseconds)
                         : 0.0;
}

}  // namespace

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

nlohmann::ordered_json pages_json(const Engine& engine, const Session& session,
                                  const PromptLabels& labels) {
  nlohmann::ordered_json by_state = nlohmann::ordered_json::object();
  nlohmann::ordered_json by_region = nlohmann::ordered_json::object();
  const auto count = [](nlohmann::ordered_json& counts, std::string_view name) {
    auto& number = counts[std::string(name)];
    number = number.is_null() ? 1 : number.get<int>() + 1;
  };
  const std::vector<PageRegion> pages = page_regions(engine, session, labels);
  for (const PageRegion& page : pages) {
    count(by_state, kv_format_name(page.format));
    count(by_region, region_name(page.region));
  }
  if (pages.empty())
    by_state[kv_format_name(engine.cache().groups().front().layout.format)] =
        page_count(engine, session);
  by_state["gone"] = session.memory() != nullptr ? session.memory()->evicted_pages() : 0;
  return {{"by_state", std::move(by_state)}, {"by_region", std::move(by_region)}};
}

std::string describe_turn(const PlayedTurn& turn) {
  return fmt::format(
      "{} new, {} reused, {} computed, {} recomputed, {} generated, {} evicted tokens; prompt "
      "{:.0f} ms, {:.2f} ms a token",
      turn.new_tokens, turn.reused_tokens, turn.computed_tokens, turn.recomputed_tokens,
      turn.generated_tokens, turn.evicted_tokens, static_cast<double>(turn.prompt_ns) / 1e6,
      turn.ms_per_token());
}

std::string describe_pages(const Engine& engine, const Session& session, const PlayedTurn& turn) {
  const auto words = [](const nlohmann::ordered_json& counts) {
    std::string text;
    for (const auto& [name, number] : counts.items())
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number.get<std::int64_t>(), name);
    return text;
  };
  const nlohmann::ordered_json pages = pages_json(engine, session, turn.labels);
  const std::string by_region = words(pages.at("by_region"));
  return fmt::format("{} live, {} at most{}; pages: {}{}{}", format_bytes(turn.live_bytes),
                     format_bytes(turn.peak_bytes), budget_words(engine),
                     words(pages.at("by_state")), by_region.empty() ? "" : "; ", by_region);
}

void RefusedPinsNote::tell(const PlayedTurn& turn) {
  if (told_ || turn.pins_refused_tokens == 0) return;
  told_ = true;
  print_note(
      fmt::format("{} of {} pinned tokens (the system text, the task's goal) are not protected: "
                  "pins may hold half of the budget",
                  turn.pins_refused_tokens, turn.pinned_tokens));
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
