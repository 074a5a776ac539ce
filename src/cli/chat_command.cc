#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/memory_report.h"
#include "cli/sampling_flags.h"
#include "cli/standard_error.h"
#include "cli/standard_output.h"
#include "engine/model_catalogue.h"
#include "engine/prompt/stable_prefix.h"
#include "sys/standard_streams.h"

namespace memdecay {
namespace {

struct ChatFlags {
  EngineFlags engine;
  SamplingOptions sampling;
  std::string system;
  std::string stable_prefix = "off";
  int max_new_tokens = 512;
};

/// One question and its answer; a failure is told and the question taken back, so that the chat can
/// go on.
Status chat_turn(const ChatFlags& flags, const Engine& engine, Conversation& conversation,
                 const std::string& line, RefusedPinsNote& refused_pins) {
  conversation.add_message({{"role", "user"}, {"content", line}});
  const Result<GenerationResult> result =
      conversation.answer(flags.sampling, flags.max_new_tokens, print_text);
  if (!result.ok()) {
    conversation.forget_last_message();
    std::printf("\n");
    return result.status();
  }
  print_text("\n");
  const PlayedTurn& turn = conversation.last_turn();
  print_aside(describe_turn(turn) +
              (result->reason == FinishReason::kLength ? "; cut at the limit" : ""));
  print_aside(describe_pages(engine, conversation.session(), turn));
  if (!turn.miss.empty()) print_aside("not reused: " + turn.miss);
  refused_pins.tell(turn);
  return Status();
}

/// Why this model cannot chat, or OK.
Status check_template(const Model& model) {
  if (model.chat_template() != nullptr) return Status();
  if (!model.chat_template_status().ok()) return model.chat_template_status();
  return Status(StatusCode::kUnsupported,
                "this is a base model without a chat template, so it cannot chat; try `memdecay "
                "run`");
}

/// Words that a person at a terminal types to the program; through a pipe all lines are messages.
const std::string kHelp =
    "/help   this list\n"
    "/exit   end the chat; so do an empty line and Ctrl-D\n"
    "Anything else goes to the model.\n";

/// "/word" alone: "/etc/hosts" and "/help me" are messages.
bool is_command(const std::string& line) {
  return line.size() > 1 && line[0] == '/' && std::all_of(line.begin() + 1, line.end(), [](char c) {
           return std::isalpha(static_cast<unsigned char>(c)) != 0;
         });
}

/// "qwen-0.5b (its own name)" for a model of the catalogue, else its own name.
std::string describe_model(const ChatFlags& flags, const Model& model) {
  const std::string& given = flags.engine.model();
  const auto& known = model_catalogue();
  const bool is_name = std::any_of(known.begin(), known.end(),
                                   [&](const auto& entry) { return entry.name == given; });
  return is_name ? given + " (" + model.config().name + ")" : model.config().name;
}

Status chat(const ChatFlags& flags) {
  MEMDECAY_RETURN_IF_ERROR(flags.sampling.validate());
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.engine.make_engine());
  MEMDECAY_RETURN_IF_ERROR(check_template(engine->model()));
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Conversation> conversation,
                            Conversation::open(*engine, nlohmann::ordered_json::array()));
  MEMDECAY_ASSIGN_OR_RETURN(const StablePrefix rule, stable_prefix_named(flags.stable_prefix));
  if (!flags.system.empty())
    conversation->add_message({{"role", "system"}, {"content", stable_text(flags.system, rule)}});
  const bool interactive = is_terminal(stdin);
  std::printf("%s, %s, %s kernels.%s\n", describe_model(flags, engine->model()).c_str(),
              describe_threads(*engine).c_str(), engine->kernels().name,
              interactive ? " Type a message; /help lists the commands, /exit ends the chat." : "");
  RefusedPinsNote refused_pins;
  std::string line;
  for (;;) {
    if (interactive) print_text("\n> ");
    if (!std::getline(std::cin, line) || (interactive && line.empty())) break;
    if (line.empty()) continue;
    if (interactive && is_command(line)) {
      if (line == "/exit") break;
      print_text(line == "/help" ? kHelp : "there is no command " + line + "; /help lists them\n");
      continue;
    }
    const Status status = chat_turn(flags, *engine, *conversation, line, refused_pins);
    MEMDECAY_RETURN_IF_ERROR(output_status());
    if (status.ok()) continue;
    if (!interactive) return status;  // nobody is there to say something else
    report(status);
  }
  if (interactive) std::printf("\n");
  return Status();
}

}  // namespace

void add_chat_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<ChatFlags>();
  CLI::App* command =
      program.add_subcommand("chat", "talk with a model; shows its memory after each turn");
  flags->engine.add_to(*command);
  command->add_option("--system", flags->system, "a system message to begin with");
  command->add_option("-n,--predict", flags->max_new_tokens, "longest answer in tokens")
      ->check(whole_number(1, 1 << 24))
      ->capture_default_str();
  add_sampling_flags(*command, flags->sampling);
  add_stable_prefix_flag(*command, flags->stable_prefix);
  command->footer(
      "At a terminal /help lists what the chat itself understands. Without a terminal on stdin "
      "every "
      "line is a message;\nthe first failure ends the chat.\n\n"
      "Examples:\n"
      "  memdecay chat\n"
      "  memdecay chat -m smollm2 --system \"Answer in one sentence.\" --temp 0\n"
      "  memdecay chat --kv-budget 64MiB -c 4096\n"
      "  printf 'Hello\\nWhat did I say?\\n' | memdecay chat");
  command->callback([flags, &status] { status = report(chat(*flags)); });
}

}  // namespace memdecay
