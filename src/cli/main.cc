#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_status.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, not a death
  CLI::App program{
      "memdecay: an inference engine whose KV cache is a memory system.\n"
      "Start with `memdecay chat`; every command explains itself with --help."};
  program.set_version_flag("--version", MEMDECAY_VERSION);
  program.require_subcommand(1);
  program.failure_message(CLI::FailureMessage::simple);
  int status = memdecay::kExitDone;
  memdecay::add_chat_command(program, status);
  memdecay::add_run_command(program, status);
  memdecay::add_demo_command(program, status);
  memdecay::add_bench_command(program, status);
  memdecay::add_perplexity_command(program, status);
  memdecay::add_tokenize_command(program, status);
  memdecay::add_template_command(program, status);
  memdecay::add_inspect_command(program, status);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? memdecay::kExitDone : memdecay::kExitUsage;
  }
  return status;
}
