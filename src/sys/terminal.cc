#include "sys/terminal.h"

#include <unistd.h>

namespace memdecay {

bool is_terminal(std::FILE* stream) {
  return ::isatty(::fileno(stream)) == 1;
}

}  // namespace memdecay
