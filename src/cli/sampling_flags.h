// The sampling flags that commands which generate share; names and defaults are llama.cpp's.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/generation.h"

namespace memdecay {

/// Adds --temp, --top-k, --top-p, --min-p and --seed, which fill `options`.
void add_sampling_flags(CLI::App& command, SamplingOptions& options);

}  // namespace memdecay
