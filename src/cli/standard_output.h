// Standard output as something that can fail: a full disk, a reader that went away.
//
// Commands print with stdio and need not look; main() asks output_status() once at the end. What
// may print for minutes uses generate_while_heard(), so that it ends when nobody reads. One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/status.h"
#include "engine/engine.h"

namespace memdecay {

/// Prints at once, without waiting for a line to be full.
void print_text(const std::string& text);

/// One JSON value and a line end; what is no UTF-8 in it (the text of models and files is untrusted
/// bytes) becomes U+FFFD. `indent` as of nlohmann's dump(); -1: one line.
void print_json(const nlohmann::ordered_json& json, int indent = -1);

/// Flushes. kIoError when anything that was printed so far got lost.
Status output_status();

/// Engine::generate(), cancelled as soon as standard output fails.
Result<GenerationResult> generate_while_heard(Engine& engine, GenerationRequest request);

}  // namespace memdecay
