#include "sys/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace memdecay {

bool is_terminal(std::FILE* stream) {
  return ::isatty(::fileno(stream)) == 1;
}

void fill_closed_standard_streams() {
  // open() takes the lowest free number, so it fills the gaps in turn.
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) {
    descriptor = ::open("/dev/null", O_RDONLY);
  }
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

}  // namespace memdecay
