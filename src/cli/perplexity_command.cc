#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/read_text.h"
#include "cli/standard_error.h"
#include "cli/standard_output.h"
#include "cli/usage_message.h"
#include "engine/prompt/prompt.h"
#include "eval/perplexity/perplexity.h"

namespace memdecay {
namespace {

struct PerplexityFlags {
  EngineFlags engine;
  std::string file;
  PerplexityOptions options;
  bool json = false;
};

void print_result(const PerplexityResult& result) {
  std::printf("chunks %d, scored tokens %lld\n", result.chunks,
              static_cast<long long>(result.scored_tokens));
  std::printf("perplexity   %.4f +- %.4f\n", result.perplexity, result.perplexity_error);
  if (!result.comparison) return;
  std::printf("mean KL      %.3e\np99 KL       %.3e\nmax KL       %.3e\nsame top     %.3f %%\n",
              result.comparison->mean_kl, result.comparison->p99_kl, result.comparison->max_kl,
              100.0 * result.comparison->same_top);
}

nlohmann::ordered_json result_json(const PerplexityResult& result) {
  nlohmann::ordered_json json;
  json["ppl"] = result.perplexity;
  json["ppl_error"] = result.perplexity_error;
  json["tokens"] = result.scored_tokens;
  json["chunks"] = result.chunks;
  if (result.comparison) {
    json["mean_kld"] = result.comparison->mean_kl;
    json["p99_kld"] = result.comparison->p99_kl;
    json["max_kld"] = result.comparison->max_kl;
    json["same_top"] = result.comparison->same_top;
  }
  return json;
}

Status perplexity(PerplexityFlags& flags) {
  std::string text;  // read before the model is loaded: a wrong path shows at once
  if (flags.options.base_file.empty()) {
    MEMDECAY_ASSIGN_OR_RETURN(text, read_text(flags.file));
  }
  MEMDECAY_ASSIGN_OR_RETURN(EngineOptions engine_options, flags.engine.options());
  engine_options.share_prefixes = false;  // every chunk is its own text
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::create(engine_options));
  std::vector<TokenId> tokens;
  if (flags.options.base_file.empty()) {
    MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt, raw_prompt(engine->model(), text));
    tokens = std::move(prompt.tokens);
  }
  flags.options.on_progress = [progress = Progress()](int done, int all) mutable {
    progress.tell(fmt::format("chunk {} of {}", done, all), static_cast<double>(done) / all);
  };
  const Result<PerplexityResult> result = measure_perplexity(*engine, tokens, flags.options);
  if (!result.ok()) return result.status();
  flags.json ? print_json(result_json(*result)) : print_result(*result);
  return Status();
}

}  // namespace

void add_perplexity_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* command = program.add_subcommand(
      "perplexity",
      "how well a model predicts a text; reads and writes llama-perplexity's logits files");
  flags->engine.add_to(*command, /*positional=*/true);
  command->remove_option(command->get_option("-c"));
  command->add_option("-c,--ctx-size", flags->options.context, "tokens a chunk")
      ->check(whole_number(4, 1 << 20))
      ->capture_default_str();
  command->add_option("-f,--file", flags->file, "the text (- for stdin)")->type_name("FILE");
  command->add_option("--chunks", flags->options.chunks, "at most this many chunks; -1: all")
      ->check(all_or_count())
      ->capture_default_str();
  command->add_option("--kl-divergence-base", flags->options.base_file,
                      "compare with these saved predictions, on their tokens");
  command->add_option("--save-all-logits", flags->options.save_file,
                      "save the predictions, to be a base file");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "The text is cut into chunks; the second half of each is scored. A base file holds its own "
      "tokens, so -f is not needed with it.\n\n"
      "Examples:\n"
      "  memdecay perplexity smollm2 -f text.txt -c 512 --chunks 8 --json\n"
      "  memdecay perplexity smollm2 -f text.txt --precision exact --save-all-logits exact.kld\n"
      "  memdecay perplexity smollm2 --kl-divergence-base exact.kld   # also llama-perplexity's");
  command->callback([flags, &status] {
    require_model_argument(flags->engine.model());
    if (flags->file.empty() && flags->options.base_file.empty())
      throw CLI::ValidationError("name a text with -f, or a --kl-divergence-base");
    status = report(perplexity(*flags));
  });
}

}  // namespace memdecay
