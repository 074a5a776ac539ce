#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/read_text.h"
#include "cli/usage_message.h"
#include "engine/model_catalogue.h"
#include "engine/prompt/prompt.h"
#include "eval/readers/parse_json.h"

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
  MEMDECAY_ASSIGN_OR_RETURN(const nlohmann::ordered_json conversation, parse_json(text, "stdin"));
  if (!conversation.is_object() || !conversation.contains("messages")) {
    return Status(StatusCode::kInvalidArgument, "stdin is no JSON object with \"messages\"");
  }
  if (conversation.at("messages").empty())
    return Status(StatusCode::kInvalidArgument, "the conversation has no messages");
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
  add_model_argument(*command, flags->model);
  command->add_flag("--add-generation-prompt", flags->add_generation_prompt,
                    "end where the assistant's answer begins");
  command->footer(
      "Example:\n"
      "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | memdecay template "
      "smollm2 --add-generation-prompt");
  command->callback([flags, &status] {
    require_model_argument(flags->model);
    status = report(render(*flags));
  });
}

}  // namespace memdecay
