// Run files as text: plain or gzip, told apart by their first bytes.
//
// Not a streaming reader: recorded runs are megabytes. Cost: O(bytes), all in memory, never more
// than `max_bytes` of it, so that a small archive cannot fill the machine. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/status.h"

namespace memdecay {

inline constexpr std::size_t kLargestRunBytes = std::size_t{1} << 30;

/// The text of a file. kNotFound, kInvalidArgument (a folder, an empty file) or kIoError from the
/// system; kCorrupt for a damaged archive; kResourceExhausted beyond `max_bytes`.
Result<std::string> read_run_text(const std::string& path,
                                  std::size_t max_bytes = kLargestRunBytes);

/// The same of bytes in memory; `place` begins every failure.
Result<std::string> unpack_run_text(std::span<const std::byte> bytes, const std::string& place,
                                    std::size_t max_bytes = kLargestRunBytes);

}  // namespace memdecay
