#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/memory_report.h"
#include "cli/standard_output.h"
#include "core/units.h"

namespace memdecay {

extern const char kDemoConversationJson[];  // cli/demo_conversation.json, embedded by CMake

namespace {

struct DemoFlags {
  EngineFlags engine;
  int max_new_tokens = 64;
};

/// What one generated answer took.
struct TurnRow {
  std::string cause;  ///< role of the message that was answered
  GenerationResult result;
  std::size_t tokens;
  nlohmann::ordered_json memory;
};

void print_table(const std::vector<TurnRow>& rows) {
  std::printf("\n%4s  %-6s %8s %8s %8s %9s %8s %7s %10s %7s %10s %9s\n", "turn", "after", "prompt",
              "reused", "computed", "generated", "tokens", "pages", "KV bytes", "filled",
              "prompt/s", "decode/s");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TurnRow& row = rows[i];
    std::printf("%4zu  %-6s %8d %8d %8d %9zu %8zu %7d %10s %6.1f%% %10.1f %9.1f\n", i + 1,
                row.cause.c_str(), row.result.prompt_tokens, row.result.reused_tokens,
                row.result.computed_tokens, row.result.tokens.size(), row.tokens,
                row.memory.at("pages").get<int>(),
                format_bytes(row.memory.at("live_bytes").get<std::uint64_t>()).c_str(),
                100.0 * row.memory.at("utilisation").get<double>(),
                prompt_tokens_per_second(row.result), decode_tokens_per_second(row.result));
  }
}

Status demo(const DemoFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.engine.make_engine());
  const auto script = nlohmann::ordered_json::parse(kDemoConversationJson);
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Conversation> conversation,
                            Conversation::open(*engine, script.at("tools")));
  conversation->add_message({{"role", "system"}, {"content", script.at("system")}});
  std::printf("%s on %s (%s kernels): a scripted conversation of %zu turns with tools\n",
              engine->model().config().name.c_str(), describe_threads(*engine).c_str(),
              engine->kernels().name, script.at("turns").size());
  SamplingOptions greedy;
  greedy.temperature = 0.0F;
  std::vector<TurnRow> rows;
  for (const auto& message : script.at("turns")) {
    const std::string role = message.at("role");
    std::printf("\n[%s] %s\n[assistant] ", role.c_str(),
                message.at("content").get<std::string>().c_str());
    conversation->add_message(message);
    MEMDECAY_ASSIGN_OR_RETURN(GenerationResult result,
                              conversation->answer(greedy, flags.max_new_tokens, print_text));
    print_text("\n");
    MEMDECAY_RETURN_IF_ERROR(output_status());
    rows.push_back({role, std::move(result), conversation->session().tokens().size(),
                    memory_json(*engine, conversation->session())});
  }
  print_table(rows);
  return Status();
}

}  // namespace

void add_demo_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<DemoFlags>();
  CLI::App* command = program.add_subcommand("demo",
                                             "play a scripted agent conversation (system prompt, "
                                             "tools, tool results) and show its memory");
  flags->engine.add_to(*command);
  command->add_option("-n,--predict", flags->max_new_tokens, "longest answer in tokens")
      ->check(whole_number(1, 1 << 24))
      ->capture_default_str();
  command->footer(
      "The table: prompt tokens of a turn, how many of them the session held already, how many "
      "were "
      "computed\n(answer included), what the session holds now, and the speed.\n\n"
      "Examples:\n"
      "  memdecay demo\n"
      "  memdecay demo -m qwen-1.5b --kv-budget 128MiB --page-tokens 16");
  command->callback([flags, &status] { status = report(demo(*flags)); });
}

}  // namespace memdecay
