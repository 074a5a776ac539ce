// Standard output as something that can fail: a full disk, a reader that went away.
//
// Commands print with stdio and need not look; main() asks output_status() once at the end. What
// may print for minutes uses generate_while_heard(), so that it ends when nobody reads. One thread.
#pragma once

#include <string>

#include "core/status.h"
#include "engine/engine.h"

namespace memdecay {

/// Prints at once, without waiting for a line to be full.
void print_text(const std::string& text);

/// Flushes. kIoError when anything that was printed so far got lost.
Status output_status();

/// Engine::generate(), cancelled as soon as standard output fails.
Result<GenerationResult> generate_while_heard(Engine& engine, GenerationRequest request);

}  // namespace memdecay
