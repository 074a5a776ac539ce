// Byte quantities for people: constants, and text as "512 B", "1.5 MiB".
//
// Parsing accepts what --kv-budget documents: a whole number with an optional suffix B, K, KB, KiB,
// M, ... G, T; every suffix is a power of 1024, as in other memory flags. Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memdecay {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

/// "512 B", "1.5 MiB": three significant digits at most.
std::string format_bytes(std::uint64_t bytes);

/// kInvalidArgument for anything but digits and a known suffix, and for a value above 2^63 - 1.
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace memdecay
