// What the memdecay program tells its caller: 0 done, 1 failed with a sentence on stderr, 2 wrong
// usage.
#pragma once

#include "core/status.h"

namespace memdecay {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

/// Prints "memdecay: message" to stderr unless OK, and returns the exit status.
int report(const Status& status);

}  // namespace memdecay
