#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace memdecay {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace memdecay
