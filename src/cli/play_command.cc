#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/memory_report.h"
#include "cli/read_text.h"
#include "cli/standard_output.h"
#include "eval/play/player.h"
#include "eval/readers/parse_json.h"

namespace memdecay {
namespace {

struct PlayFlags {
  EngineFlags engine;
  std::vector<std::string> messages;  ///< files
  bool recorded = false;
  int generate_tokens = 0;
  std::vector<std::string> cache_salts;  ///< one for all files, or one a file
  std::string stable_prefix = "off";
  bool json = false;
  bool kept = false;
  std::string eviction = "streaming";
};

nlohmann::ordered_json kept_json(const PlayedTurn& turn) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const PositionRun& run : turn.kept) runs.push_back({run.first, run.end()});
  return runs;
}

nlohmann::ordered_json turn_json(const PlayedTurn& turn, const Engine& engine,
                                 const Session& session) {
  nlohmann::ordered_json json;
  json["turn"] = turn.turn;
  json["new_tokens"] = turn.new_tokens;
  json["reused_tokens"] = turn.reused_tokens;
  json["cached_tokens"] = turn.cached_tokens;
  json["computed_tokens"] = turn.computed_tokens;
  json["recomputed_tokens"] = turn.recomputed_tokens;
  json["generated_tokens"] = turn.generated_tokens;
  json["agreed_tokens"] = turn.agreed_tokens;
  json["evicted_tokens"] = turn.evicted_tokens;
  json["pins_refused_tokens"] = turn.pins_refused_tokens;
  json["live_bytes"] = turn.live_bytes;
  json["peak_bytes"] = turn.peak_bytes;
  json["pages"] = pages_json(engine, session, turn.labels);
  json["prompt_ms"] = static_cast<double>(turn.prompt_ns) / 1e6;
  json["ms_per_token"] = turn.ms_per_token();
  json["step_ms"] = {
      {"p50", turn.step_ms(0.5)}, {"p95", turn.step_ms(0.95)}, {"p99", turn.step_ms(0.99)}};
  json["text"] = turn.text;
  if (!turn.miss.empty()) json["miss"] = turn.miss;
  return json;
}

void print_row(const PlayedTurn& turn) {
  std::printf("%5d %8d %8d %8d %9d %8lld %11llu %11llu %9.2f\n", turn.turn, turn.new_tokens,
              turn.reused_tokens, turn.computed_tokens, turn.generated_tokens,
              static_cast<long long>(turn.evicted_tokens),
              static_cast<unsigned long long>(turn.live_bytes),
              static_cast<unsigned long long>(turn.peak_bytes), turn.ms_per_token());
  if (!turn.miss.empty()) std::printf("      not reused: %s\n", turn.miss.c_str());
}

Result<nlohmann::ordered_json> read_conversation(const std::string& path) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  return parse_json(text, path);
}

/// `file` names the conversation in failures, and in JSON where there are several.
Status play_one(const PlayFlags& flags, const PlayOptions& options,
                nlohmann::ordered_json conversation, const std::string& file, Engine& engine) {
  const Result<std::unique_ptr<Player>> opened =
      Player::open(engine, std::move(conversation), options);
  if (!opened.ok()) return opened.status().with_context(file);
  const std::unique_ptr<Player>& player = *opened;
  RefusedPinsNote refused_pins;
  for (;;) {
    const Result<std::optional<PlayedTurn>> played = player->next();
    if (!played.ok()) return played.status().with_context(file);
    const std::optional<PlayedTurn>& turn = *played;
    if (!turn.has_value()) return Status();
    refused_pins.tell(*turn);
    if (flags.json) {
      nlohmann::ordered_json line = turn_json(*turn, engine, player->session());
      if (flags.messages.size() > 1) line["messages"] = file;
      if (flags.kept) {
        const SessionMemory* memory = player->session().memory();
        line["evictable_bytes"] = memory != nullptr ? memory->tracked_bytes() : 0;
        line["kept"] = kept_json(*turn);
        line["scores"] = page_scores_json(player->session());
      }
      print_json(line);
    } else {
      print_row(*turn);
    }
    MEMDECAY_RETURN_IF_ERROR(output_status());
  }
}

Status play(const PlayFlags& flags) {
  std::vector<nlohmann::ordered_json> conversations;
  for (const std::string& file : flags.messages) {
    MEMDECAY_ASSIGN_OR_RETURN(conversations.emplace_back(), read_conversation(file));
  }
  MEMDECAY_ASSIGN_OR_RETURN(EngineOptions engine_options, flags.engine.options());
  engine_options.adaptive_decay = false;  // what is forgotten must not depend on the machine
  PlayOptions options;
  options.force_recorded = flags.recorded;
  if (flags.generate_tokens > 0) options.generate_tokens = flags.generate_tokens;
  if (flags.eviction == "after") {
    options.shrink_to_bytes = engine_options.kv_budget_bytes;
    engine_options.kv_budget_bytes = KvBudget::kUnlimited;
    engine_options.pools_for_all_forms = true;
  }
  options.sampling.temperature = 0.0F;
  MEMDECAY_ASSIGN_OR_RETURN(options.stable_prefix, stable_prefix_named(flags.stable_prefix));
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::create(engine_options));
  if (!flags.json) {
    std::printf("%5s %8s %8s %8s %9s %8s %11s %11s %9s\n", "turn", "new", "reused", "computed",
                "generated", "evicted", "live bytes", "peak bytes", "ms/token");
  }
  for (std::size_t i = 0; i < conversations.size(); ++i) {
    if (!flags.cache_salts.empty())
      options.cache_salt = flags.cache_salts[flags.cache_salts.size() == 1 ? 0 : i];
    MEMDECAY_RETURN_IF_ERROR(
        play_one(flags, options, std::move(conversations[i]), flags.messages[i], *engine));
  }
  return Status();
}

}  // namespace

void add_play_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<PlayFlags>();
  CLI::App* command = program.add_subcommand(
      "play", "play a recorded conversation through one session and show what each turn cost");
  flags->engine.add_to(*command);
  command
      ->add_option("--messages", flags->messages,
                   "JSON files {\"messages\": [...], \"tools\": [...]}, each played through a "
                   "session of its own; - is stdin")
      ->type_name("FILE")
      ->required();
  command->add_flag("--recorded", flags->recorded,
                    "force the recorded assistant turns, token by token");
  command
      ->add_option("--generate", flags->generate_tokens,
                   "let the model write its own turns, of at most so many tokens, greedily; with "
                   "--recorded only the answer to a question at the end (else of 128 tokens)")
      ->check(whole_number(1, 1 << 24));
  add_stable_prefix_flag(*command, flags->stable_prefix);
  command
      ->add_option("--cache-salt", flags->cache_salts,
                   "whose prefixes conversations share: those with the same salt, and no others; "
                   "one for all, or one for each file of --messages")
      ->type_name("SALT");
  command->add_flag("--json", flags->json, "one JSON line a turn instead of a table");
  command->add_flag("--kept", flags->kept,
                    "in JSON: the runs [first, end) of tokens that are held at the turn's end, "
                    "what they take and every page's score");
  command
      ->add_option("--eviction", flags->eviction,
                   "streaming: as the budget asks; after: once, to the budget, when all is played")
      ->check(CLI::IsMember({"streaming", "after"}))
      ->capture_default_str();
  command->footer(
      "new: tokens of the turn's input never seen before; reused: found in the session, evicted "
      "ones included;\ncomputed: rows of forward passes (in JSON recomputed: of tokens computed "
      "before);\ngenerated: written, or forced (in JSON agreed: of those, what the model would "
      "write "
      "there);\nevicted: tokens forgotten; peak: the most bytes of the turn.\n\n"
      "Examples:\n"
      "  memdecay play -m smollm2 --messages run.json --recorded --kv-budget 32MiB\n"
      "  memdecay play --messages run.json --generate 64 --policy window --json");
  command->callback([flags, &status] {
    if (!flags->recorded && flags->generate_tokens == 0)
      throw CLI::RequiredError("--recorded or --generate");
    if (flags->eviction == "after" && !flags->engine.has_budget())
      throw CLI::RequiredError("--kv-budget with --eviction after");
    if (flags->cache_salts.size() > 1 && flags->cache_salts.size() != flags->messages.size())
      throw CLI::ValidationError("--cache-salt", "takes one salt for all, or one for each file");
    status = report(play(*flags));
  });
}

}  // namespace memdecay
