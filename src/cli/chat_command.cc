#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/memory_report.h"
#include "cli/sampling_flags.h"

namespace memdecay {
namespace {

struct ChatFlags {
  EngineFlags engine;
  SamplingOptions sampling;
  std::string system;
  int max_new_tokens = 512;
};

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// One question and its answer; a failure is told and the question taken back, so that the chat can
/// go on.
void chat_turn(const ChatFlags& flags, const Engine& engine, Conversation& conversation,
               const std::string& line) {
  conversation.add_message({{"role", "user"}, {"content", line}});
  const Result<GenerationResult> result =
      conversation.answer(flags.sampling, flags.max_new_tokens, print_text);
  if (!result.ok()) {
    conversation.forget_last_message();
    std::printf("\n");
    report(result.status());
    return;
  }
  std::printf(
      "\n\033[2m[%d new of %d prompt tokens at %.0f/s, %zu generated at %.1f/s%s; memory: "
      "%s]\033[0m\n",
      result->prompt_tokens - result->reused_tokens, result->prompt_tokens,
      prompt_tokens_per_second(*result), result->tokens.size(), decode_tokens_per_second(*result),
      result->reason == FinishReason::kLength ? ", cut at the limit" : "",
      describe_memory(engine, conversation.session()).c_str());
}

Status chat(const ChatFlags& flags) {
  MEMDECAY_RETURN_IF_ERROR(flags.sampling.validate());
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.engine.make_engine());
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Conversation> conversation,
                            Conversation::open(*engine, nlohmann::ordered_json::array()));
  if (engine->model().chat_template() == nullptr) {
    return Status(StatusCode::kUnsupported,
                  "this model has no chat template that memdecay can use, so it cannot chat; try "
                  "`memdecay run`");
  }
  if (!flags.system.empty())
    conversation->add_message({{"role", "system"}, {"content", flags.system}});
  std::printf(
      "%s on %d threads (%s kernels). Type a message; an empty line or Ctrl-D ends the chat.\n",
      engine->model().config().name.c_str(), engine->threads(), engine->kernels().name);
  std::string line;
  for (;;) {
    std::printf("\n> ");
    std::fflush(stdout);
    if (!std::getline(std::cin, line) || line.empty()) break;
    chat_turn(flags, *engine, *conversation, line);
  }
  std::printf("\n");
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
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_sampling_flags(*command, flags->sampling);
  command->callback([flags, &status] { status = report(chat(*flags)); });
}

}  // namespace memdecay
