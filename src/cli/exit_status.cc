#include "cli/exit_status.h"

#include <cstdio>

#include "cli/standard_error.h"

namespace memdecay {

int report(const Status& status) {
  if (status.ok()) return kExitDone;
  clear_progress_line();
  std::fprintf(stderr, "memdecay: %s\n", status.message().c_str());
  return kExitFailed;
}

}  // namespace memdecay
