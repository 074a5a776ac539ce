// The commands of the memdecay program. Each adds itself to the program's command line; when it was
// chosen, its callback runs it and leaves the exit status in `status`.
#pragma once

#include <CLI/CLI.hpp>

namespace memdecay {

void add_chat_command(CLI::App& program, int& status);
void add_run_command(CLI::App& program, int& status);
void add_demo_command(CLI::App& program, int& status);
void add_play_command(CLI::App& program, int& status);
void add_eval_command(CLI::App& program, int& status);
void add_bench_command(CLI::App& program, int& status);
void add_perplexity_command(CLI::App& program, int& status);
void add_tokenize_command(CLI::App& program, int& status);
void add_template_command(CLI::App& program, int& status);
void add_inspect_command(CLI::App& program, int& status);
void add_calibrate_command(CLI::App& program, int& status);
void add_calibrate_decay_command(CLI::App& calibrate, int& status);

}  // namespace memdecay
