// Checks of flag values, with messages for people; a value that fails one is wrong usage (status
// 2).
//
// They say what is wrong with the value ("abc" is no whole number), and leave the help's type
// column alone: commands name the type with Option::type_name() where CLI11's own is not plain.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace memdecay {

/// A byte size above 0, as parse_bytes() (core/units.h) reads it.
CLI::Validator byte_size();

/// A whole number from `least` to `most`.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);

/// A number that is neither infinite nor NaN.
CLI::Validator finite_number();

/// A finite number from `least` to `most`.
CLI::Validator number_between(double least, double most);

/// -1 for all, or a count above 0.
CLI::Validator all_or_count();

/// Tokens: 0 up to the longest sequence that an engine takes.
CLI::Validator token_count();

}  // namespace memdecay
