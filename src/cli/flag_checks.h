// Checks of flag values beyond CLI11's own; a value that fails one is wrong usage (status 2).
#pragma once

#include <CLI/CLI.hpp>

namespace memdecay {

/// A byte size above 0, as parse_bytes() (core/units.h) reads it.
CLI::Validator byte_size();

/// A number that is neither infinite nor NaN; CLI::Range lets NaN pass.
CLI::Validator finite_number();

/// -1 for all, or a count above 0.
CLI::Validator all_or_count();

/// Tokens: 0 up to the longest sequence that an engine takes.
CLI::Validator token_count();

}  // namespace memdecay
