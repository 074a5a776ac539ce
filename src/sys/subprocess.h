// subprocess: runs another program and takes what it prints.
//
// No shell is in between: arguments arrive as they are, whatever they contain. The program is
// looked up in PATH when its name has no slash. It inherits stdin, stderr, the environment and the
// working folder, so it can ask a person on the terminal; its stdout is captured. The call blocks
// until the program ends; any thread may call it. Not for programs that run on in the background.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/status.h"

namespace memdecay {

struct CommandResult {
  int exit_status = 0;  ///< as a shell tells it: 128 + signal when a signal ended the program
  std::string output;   ///< everything it wrote to stdout
};

/// Runs `arguments[0]` with the other arguments. A program that fails is a CommandResult; a Status
/// says that it could not be started (kNotFound), read (kIoError), or that it printed more than
/// `max_output_bytes` (kResourceExhausted; it is killed then).
/// REQUIRES: at least one argument, none with a NUL inside.
Result<CommandResult> run_command(const std::vector<std::string>& arguments,
                                  std::size_t max_output_bytes = std::size_t{1} << 20);

}  // namespace memdecay
