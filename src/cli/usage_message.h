// What wrong usage is told (status 2): the word that does not belong comes before what is missing.
//
// CLI11 looks for missing parts first, so a mistyped command would read "a subcommand is required".
// Names that look like the mistyped one are suggested. Pure, one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace memdecay {

/// For CLI::App::failure_message(): lines for stderr that end with where the help is.
std::string usage_message(const CLI::App* program, const CLI::Error& error);

/// The model of a command that works on a file: MODEL in its place, or -m MODEL.
void add_model_argument(CLI::App& command, std::string& model);
/// For the command's callback, as neither form alone is required. Throws CLI::RequiredError.
void require_model_argument(const std::string& model);

}  // namespace memdecay
