#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/read_text.h"
#include "cli/usage_message.h"
#include "engine/model_catalogue.h"
#include "engine/prompt/prompt.h"

namespace memdecay {
namespace {

struct TokenizeFlags {
  std::string model;
  std::string json_lines;
  bool ids = false;
  bool no_bos = false;
  bool no_special = false;
};

Result<std::vector<TokenId>> encode(const Model& model, const std::string& text,
                                    const TokenizeFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(Prompt prompt,
                            raw_prompt(model, text, {!flags.no_bos, !flags.no_special}));
  return std::move(prompt.tokens);
}

std::string ids_json(const std::vector<TokenId>& tokens) {
  std::string line = "[";
  for (const TokenId token : tokens) line += (line.size() > 1 ? ", " : "") + std::to_string(token);
  return line + "]";
}

Status tokenize_stdin(const Model& model, const TokenizeFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string text, read_text("-"));
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens, encode(model, text, flags));
  if (flags.ids) {
    std::printf("%s\n", ids_json(tokens).c_str());
    return Status();
  }
  for (const TokenId token : tokens) {
    const std::string piece = nlohmann::json(model.token_text(token))
                                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::printf("%6d  %s\n", token, piece.c_str());
  }
  return Status();
}

Status tokenize_array(const Model& model, const TokenizeFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string text, read_text(flags.json_lines));
  const auto texts = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!texts.is_array()) {
    return make_status(StatusCode::kInvalidArgument, "{} is no JSON array of strings",
                       flags.json_lines);
  }
  for (const auto& item : texts) {
    if (!item.is_string()) {
      return make_status(StatusCode::kInvalidArgument, "{} has an element that is no string",
                         flags.json_lines);
    }
    MEMDECAY_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                              encode(model, item.get<std::string>(), flags));
    std::printf("%s\n", ids_json(tokens).c_str());
  }
  return Status();
}

Status tokenize(const TokenizeFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::string path, resolve_model(flags.model));
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Model::load_vocabulary_only(path));
  return flags.json_lines.empty() ? tokenize_stdin(*model, flags) : tokenize_array(*model, flags);
}

}  // namespace

void add_tokenize_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command = program.add_subcommand("tokenize", "show the tokens of the text on stdin");
  add_model_argument(*command, flags->model);
  command->add_flag("--ids", flags->ids, "print one line, [1, 2, 3], instead of a table");
  command->add_flag("--no-bos", flags->no_bos,
                    "do not add the begin (and end) tokens that the model wants");
  command->add_flag("--no-special", flags->no_special,
                    "read control tokens such as <|im_end|> as plain text");
  command->add_option(
      "--json-lines", flags->json_lines,
      "a file with a JSON array of strings (- for stdin); prints one JSON array of ids a line");
  command->footer(
      "Examples:\n"
      "  echo -n 'Hello world' | memdecay tokenize smollm2\n"
      "  memdecay tokenize qwen-0.5b --ids --no-bos < file.txt\n"
      "  memdecay tokenize gemma3-270m --json-lines texts.json");
  command->callback([flags, &status] {
    require_model_argument(flags->model);
    status = report(tokenize(*flags));
  });
}

}  // namespace memdecay
