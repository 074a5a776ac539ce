// How full pages are under a budget: plays recorded sessions through the real engine, whose page
// borders follow regions, and looks at the pages after every pass.
//
//     memory_utilisation MODEL SESSIONS TOKENS BUDGETS FORMS RUNS...     JSON on stdout
//
// BUDGETS are shares of the fp16 bytes beside the system text's ("100%,25%"), FORMS as --kv-format
// takes them ("fp16,auto"); the policy is memdecay, with packing and without. SESSIONS sessions of
// about TOKENS tokens are chained from each data set. Of each cell: tokens held / (page tokens *
// pages held), the mean over the passes of all sessions and the least after the first 1,024 tokens.
// After each pass the cache is validated and the session's budget is checked. memory_utilisation.py
// stores the result.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/extend_without_logits.h"
#include "engine/model_catalogue.h"
#include "eval/cells/memory_cell.h"
#include "eval/cells/read_session.h"
#include "eval/readers/read_runs.h"
#include "eval/runs/message_tokens.h"
#include "eval/runs/pick_sessions.h"

namespace memdecay {
namespace {

constexpr int kChunkTokens = 32;
constexpr int kWarmTokens = 1024;

struct Asked {
  std::string model;
  int sessions = 0, tokens = 0;
  std::vector<std::string> budgets, forms, runs;
};

struct Look {
  double sum = 0, least = 1;
  int looks = 0;
  std::int64_t held_tokens = 0, held_pages = 0, evicted_tokens = 0, small_pages = 0;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Status look_at(const Engine& engine, const Session& session, Look& look) {
  MEMDECAY_RETURN_IF_ERROR(engine.cache().validate(engine.other_budget_bytes()));
  const SessionMemory& memory = *session.memory();
  if (memory.tracked_bytes() > memory.options().budget_bytes)
    return make_status(StatusCode::kCorrupt, "{} bytes are held of a budget of {}",
                       memory.tracked_bytes(), memory.options().budget_bytes);
  look.held_tokens = look.small_pages = 0;
  look.held_pages = static_cast<std::int64_t>(memory.pages().size());
  for (const SessionMemory::Page& page : memory.pages()) {
    look.held_tokens += page.filled;
    look.small_pages += page.filled < memory.options().page_tokens ? 1 : 0;
  }
  const double share = static_cast<double>(look.held_tokens) /
                       static_cast<double>(look.held_pages * memory.options().page_tokens);
  look.sum += share;
  ++look.looks;
  if (session.tokens().size() >= kWarmTokens) look.least = std::min(look.least, share);
  return Status();
}

Status play(Engine& engine, const ChainedSession& chained, const MemoryCell& cell, bool packs,
            Look& look) {
  MEMDECAY_ASSIGN_OR_RETURN(ReadSession read,
                            read_session(engine.model(), chained, /*label_noise=*/0, /*seed=*/0));
  const std::span<const TokenId> tokens(read.prompt.tokens);
  const std::uint64_t token_bytes = engine.kv_bytes_per_token();
  MEMDECAY_ASSIGN_OR_RETURN(
      SessionOptions options,
      cell.options(token_bytes * static_cast<std::uint64_t>(read.protected_tokens),
                   token_bytes * tokens.size()));
  options.packs_pages = packs;
  MEMDECAY_ASSIGN_OR_RETURN(const auto session, engine.open_session(options));
  engine.label(*session, std::move(read.labels));
  for (std::size_t at = 0; at < tokens.size(); at += kChunkTokens) {
    const std::size_t count = std::min<std::size_t>(kChunkTokens, tokens.size() - at);
    MEMDECAY_RETURN_IF_ERROR(extend_without_logits(engine, *session, tokens.subspan(at, count)));
    MEMDECAY_RETURN_IF_ERROR(look_at(engine, *session, look));
  }
  look.evicted_tokens += session->memory()->evicted_tokens();
  return Status();
}

nlohmann::ordered_json row_of(const std::string& data_set, const MemoryCell& cell, bool packs,
                              const Look& look) {
  return {{"data_set", data_set},
          {"packed", packs},
          {"budget", cell.budget.text},
          {"kv_format", cell.kv_format},
          {"utilisation_mean", look.sum / std::max(1, look.looks)},
          {"utilisation_least", look.least},
          {"held_tokens_end", look.held_tokens},
          {"held_pages_end", look.held_pages},
          {"small_pages_end", look.small_pages},
          {"evicted_tokens", look.evicted_tokens},
          {"passes", look.looks}};
}

Status measure(const Asked& asked, nlohmann::ordered_json& json) {
  MEMDECAY_ASSIGN_OR_RETURN(const auto cells,
                            make_cells({"memdecay"}, asked.forms, asked.budgets, PolicyConfig()));
  MEMDECAY_ASSIGN_OR_RETURN(const RunContents runs, read_runs(asked.runs));
  EngineOptions options;
  MEMDECAY_ASSIGN_OR_RETURN(options.model_path, resolve_model(asked.model));
  options.adaptive_decay = false;
  options.pools_for_all_forms = true;
  MEMDECAY_ASSIGN_OR_RETURN(const auto engine, Engine::create(options));
  ChainOptions chain;
  chain.min_tokens = asked.tokens * 3 / 4;
  chain.max_tokens = asked.tokens;
  MEMDECAY_ASSIGN_OR_RETURN(
      Chains chains, chain_sessions(runs.trajectories, token_counter(engine->model()), chain));
  const std::vector<ChainedSession> chosen =
      pick_sessions(std::move(chains), engine->context_tokens(), asked.sessions).sessions;
  std::map<std::string, std::vector<const ChainedSession*>> by_data_set;
  for (const ChainedSession& session : chosen) by_data_set[session.data_set].push_back(&session);
  for (const auto& [data_set, sessions] : by_data_set) {
    for (const MemoryCell& cell : cells) {
      for (const bool packs : {false, true}) {
        Look look;
        for (const ChainedSession* session : sessions)
          MEMDECAY_RETURN_IF_ERROR(play(*engine, *session, cell, packs, look));
        json.push_back(row_of(data_set, cell, packs, look));
        std::fprintf(stderr, "%s\n", json.back().dump().c_str());
      }
    }
  }
  return Status();
}

}  // namespace
}  // namespace memdecay

int main(int argc, char** argv) {
  if (argc < 7) {
    std::fprintf(stderr, "usage: memory_utilisation MODEL SESSIONS TOKENS BUDGETS FORMS RUNS...\n");
    return 2;
  }
  auto rows = nlohmann::ordered_json::array();
  const memdecay::Status status =
      memdecay::measure({argv[1], std::atoi(argv[2]), std::atoi(argv[3]), memdecay::split(argv[4]),
                         memdecay::split(argv[5]), std::vector<std::string>(argv + 6, argv + argc)},
                        rows);
  if (!status.ok()) std::fprintf(stderr, "memory_utilisation: %s\n", status.message().c_str());
  std::printf("%s\n", rows.dump().c_str());
  return status.ok() ? 0 : 1;
}
