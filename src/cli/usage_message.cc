#include "cli/usage_message.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/ascii.h"

namespace memdecay {
namespace {

/// Letters to change, add or drop between two words (Levenshtein's distance, row by row).
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

/// Those of `names` that a person may have meant by `word`, in their order.
std::vector<std::string> near(const std::string& word, const std::vector<std::string>& names) {
  const std::string typed = lower_case(word);
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const bool begins = typed.size() >= 2 && lower_case(name).starts_with(typed);
    if (begins || distance(typed, lower_case(name)) <= std::max<std::size_t>(1, name.size() / 3))
      found.push_back(name);
  }
  return found;
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> long_flags(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// "; did you mean a or b?", or `otherwise`.
std::string suggestion(const std::vector<std::string>& names, const std::string& otherwise) {
  return names.empty() ? otherwise : fmt::format("; did you mean {}?", fmt::join(names, " or "));
}

/// Why `word` has no place on the command line.
std::string stray_word(const CLI::App& program, const std::string& word) {
  const auto chosen = program.get_subcommands();
  const CLI::App& command = chosen.empty() ? program : *chosen.front();
  const std::string called = chosen.empty() ? "memdecay" : "memdecay " + command.get_name();
  if (word.size() > 1 && word.starts_with('-')) {
    const std::string flag = word.substr(0, word.find('='));
    return fmt::format("{} is no flag of {}{}", flag, called,
                       suggestion(near(flag, long_flags(command)), ""));
  }
  if (!chosen.empty()) return fmt::format("{} takes no further word \"{}\"", called, word);
  const std::vector<std::string> names = command_names(program);
  return fmt::format(
      "\"{}\" is no command{}", word,
      suggestion(near(word, names), fmt::format("; there are {}", fmt::join(names, ", "))));
}

}  // namespace

std::string usage_message(const CLI::App* program, const CLI::Error& error) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool incomplete =
      code == CLI::ExitCodes::RequiredError || code == CLI::ExitCodes::ExtrasError;
  const std::vector<std::string> strays = program->remaining(/*recurse=*/true);
  const auto chosen = program->get_subcommands();
  std::string text = error.what();
  if (incomplete && !strays.empty()) {
    text = stray_word(*program, strays.front());
  } else if (code == CLI::ExitCodes::RequiredError && chosen.empty()) {
    text = fmt::format("a command is missing: {}", fmt::join(command_names(*program), ", "));
  }
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  return fmt::format("memdecay: {}\n`memdecay{} --help` says more.\n", text, command);
}

void add_model_argument(CLI::App& command, std::string& model) {
  command.add_option("-m,--model,MODEL", model, "a catalogue name, hf:OWNER/REPO/FILE, or a path")
      ->type_name("MODEL");
}

void require_model_argument(const std::string& model) {
  if (model.empty()) throw CLI::RequiredError("a model (MODEL, or -m MODEL)");
}

}  // namespace memdecay
