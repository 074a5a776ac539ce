// Whether the column kernels fetch weights ahead of their loads (docs/decisions/0164).
#pragma once

#include <cstddef>

namespace memdecay {

/// How far ahead, in bytes.
inline constexpr std::size_t kFetchAhead = 4096;

/// True on Intel, whose prefetchers lose streams that are read in turns; on AMD's Zen 3 the same
/// fetching lost a fifth of the bandwidth.
inline bool fetching_ahead_pays() {
  static const bool intel = __builtin_cpu_is("intel") != 0;
  return intel;
}

}  // namespace memdecay
