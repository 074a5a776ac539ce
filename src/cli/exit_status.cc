#include "cli/exit_status.h"

#include <cstdio>

namespace memdecay {

int report(const Status& status) {
  if (status.ok()) return kExitDone;
  std::fprintf(stderr, "memdecay: %s\n", status.message().c_str());
  return kExitFailed;
}

}  // namespace memdecay
