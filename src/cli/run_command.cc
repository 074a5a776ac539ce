#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/memory_report.h"
#include "cli/read_text.h"
#include "cli/sampling_flags.h"
#include "cli/standard_output.h"
#include "engine/memory/token_regions.h"
#include "engine/prompt/prompt.h"

namespace memdecay {
namespace {

struct RunFlags {
  EngineFlags engine;
  SamplingOptions sampling;
  std::string prompt;
  std::string file;
  int max_new_tokens = 128;
  bool json = false;
};

const char* reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kNoMemory:
      return "no_memory";
    case FinishReason::kFailed:
      return "failed";
  }
  return "unknown";
}

nlohmann::ordered_json result_json(const GenerationResult& result) {
  nlohmann::ordered_json json;
  json["text"] = result.text;
  json["finish_reason"] = reason_name(result.reason);
  json["prompt_tokens"] = result.prompt_tokens;
  json["generated_tokens"] = result.tokens.size();
  json["tokens"] = result.tokens;
  json["prompt_tokens_per_second"] = prompt_tokens_per_second(result);
  json["decode_tokens_per_second"] = decode_tokens_per_second(result);
  if (!result.status.ok()) json["error"] = result.status.message();
  return json;
}

Status run(const RunFlags& flags) {
  MEMDECAY_RETURN_IF_ERROR(flags.sampling.validate());
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags.engine.make_engine());
  MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt, raw_prompt(engine->model(), flags.prompt));
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine->open_session());
  PromptLabels labels;
  if (session->memory() != nullptr || flags.json) {
    MEMDECAY_ASSIGN_OR_RETURN(labels, label_raw_prompt(engine->model(), prompt));
  }
  const TurnMeter meter(*engine, *session);
  GenerationRequest request;
  request.session = session.get();
  request.labels = labels;
  request.prompt = std::move(prompt.tokens);
  request.max_new_tokens = flags.max_new_tokens;
  request.sampling = flags.sampling;
  if (!flags.json) request.on_text = print_text;
  MEMDECAY_ASSIGN_OR_RETURN(const GenerationResult result,
                            generate_while_heard(*engine, std::move(request)));
  PlayedTurn turn = turn_of(result, std::move(labels));
  meter.read(turn);
  if (flags.json) {
    nlohmann::ordered_json json = result_json(result);
    json["memory"] = memory_json(*engine, *session);
    json["memory"].update(pages_json(*engine, *session, turn.labels));
    print_json(json);
  } else {
    print_text("\n");
  }
  if (result.status.ok()) RefusedPinsNote().tell(turn);
  return result.status;
}

Status run_file(RunFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(flags.prompt, read_text(flags.file));
  if (flags.prompt.ends_with('\n')) flags.prompt.pop_back();  // the editor's, not the author's
  return run(flags);
}

}  // namespace

void add_run_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* command = program.add_subcommand("run", "continue a prompt, without a chat template");
  flags->engine.add_to(*command);
  CLI::Option* prompt = command->add_option("-p,--prompt", flags->prompt, "the text to continue");
  CLI::Option* file =
      command
          ->add_option("-f,--file", flags->file,
                       "a file with the text (- for stdin), less a line end at its end")
          ->type_name("FILE")
          ->excludes(prompt);
  command->add_option("-n,--predict", flags->max_new_tokens, "most tokens to generate")
      ->check(token_count())
      ->capture_default_str();
  add_sampling_flags(*command, flags->sampling);
  command->add_flag("--json", flags->json,
                    "print one JSON object instead of the text: text, finish_reason, tokens, "
                    "speeds, memory");
  command->footer(
      "Examples:\n"
      "  memdecay run -m smollm2 -p \"Once upon a time\" -n 64\n"
      "  memdecay run -p \"def fibonacci(n):\" -n 100 --temp 0 --json\n"
      "  memdecay run -m smollm2 -f story.txt   # or -f - for what a pipe brings\n"
      "  memdecay run -p \"Dear diary\" --seed 7 --kv-budget 32MiB   # strict; says so when it is "
      "full");
  command->callback([flags, prompt, file, &status] {
    if (prompt->count() == 0 && file->count() == 0)
      throw CLI::RequiredError("a text (--prompt TEXT, or --file FILE)");
    status = file->count() == 0 ? report(run(*flags)) : report(run_file(*flags));
  });
}

}  // namespace memdecay
