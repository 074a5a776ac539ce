// The one clock of measurements: nanoseconds of the steady clock, which never goes back. Only
// differences mean something. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace memdecay {

inline std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double steady_seconds() {
  return static_cast<double>(steady_now_ns()) / 1e9;
}

}  // namespace memdecay
