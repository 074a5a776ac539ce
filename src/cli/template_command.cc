#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/read_text.h"
#include "engine/model_catalogue.h"
#include "engine/prompt.h"

namespace memdecay {
namespace {

struct TemplateFlags {
  std::string model;
  bool add_generation_prompt = false;
};

Status render(const TemplateFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string path, resolve_model(flags.model));
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::load_vocabulary_only(path));
  MEMDECAY_ASSIGN_OR_RETURN(const std::string text, read_text("-"));
  const auto conversation =
      nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (conversation.is_discarded())
    return Status(StatusCode::kInvalidArgument, "what stdin holds is no JSON");
  if (!conversation.is_object() || !conversation.contains("messages")) {
    return Status(StatusCode::kInvalidArgument, "stdin is no JSON object with \"messages\"");
  }
  MEMDECAY_ASSIGN_OR_RETURN(const Prompt prompt,
                            render_prompt(*model, conversation, flags.add_generation_prompt));
  std::fwrite(prompt.text.data(), 1, prompt.text.size(), stdout);
  return Status();
}

}  // namespace

void add_template_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<TemplateFlags>();
  CLI::App* command = program.add_subcommand("template",
                                             "render a conversation, {\"messages\", \"tools\"} as "
                                             "JSON on stdin, with a model's chat template");
  command->add_option("MODEL", flags->model, "a catalogue name, hf:OWNER/REPO/FILE, or a path")
      ->required();
  command->add_flag("--add-generation-prompt", flags->add_generation_prompt,
                    "end where the assistant's answer begins");
  command->footer(
      "Example:\n"
      "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | memdecay template "
      "smollm2 --add-generation-prompt");
  command->callback([flags, &status] { status = report(render(*flags)); });
}

}  // namespace memdecay
