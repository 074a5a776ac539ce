#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/standard_output.h"
#include "cli/usage_message.h"
#include "sys/standard_streams.h"

int main(int argc, char** argv) {
  memdecay::fill_closed_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write error, not a death
  CLI::App program{
      "memdecay: an inference engine whose KV cache is a memory system.\n"
      "Start with `memdecay chat`; every command explains itself with --help.",
      "memdecay"};
  program.footer(
      "Exit status: 0 done, 1 failed with a sentence on stderr, 2 wrong usage.\n\n"
      "Examples:\n"
      "  memdecay chat\n"
      "  memdecay run -m smollm2 -p \"Once upon a time\" -n 64\n"
      "  memdecay inspect qwen-1.5b");
  program.set_version_flag("--version", "memdecay " MEMDECAY_VERSION);
  program.require_subcommand(1);
  // A flag that is given twice counts as it was given last, so a script's flags can be overridden.
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  program.failure_message(memdecay::usage_message);
  program.get_formatter()->label("INT", "N");
  program.get_formatter()->label("UINT", "N");
  program.get_formatter()->label("FLOAT", "NUMBER");
  int status = memdecay::kExitDone;
  memdecay::add_chat_command(program, status);
  memdecay::add_run_command(program, status);
  memdecay::add_demo_command(program, status);
  memdecay::add_play_command(program, status);
  memdecay::add_eval_command(program, status);
  memdecay::add_bench_command(program, status);
  memdecay::add_perplexity_command(program, status);
  memdecay::add_tokenize_command(program, status);
  memdecay::add_template_command(program, status);
  memdecay::add_inspect_command(program, status);
  memdecay::add_calibrate_command(program, status);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    status = program.exit(error) == 0 ? memdecay::kExitDone : memdecay::kExitUsage;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "memdecay: this machine has not enough memory\n");
    status = memdecay::kExitFailed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "memdecay: %s\n", error.what());
    status = memdecay::kExitFailed;
  }
  const memdecay::Status output = memdecay::output_status();
  return status == memdecay::kExitDone ? memdecay::report(output) : status;
}
