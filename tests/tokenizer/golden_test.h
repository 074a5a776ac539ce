// The golden check of a model's tokenizer, free of where vocabularies come from.
//
// golden_test.cc holds the test; a program that can read model files links it and defines
// golden_vocabulary. Models that are not on this machine are skipped.
#pragma once

#include <optional>
#include <string>

#include "core/status.h"
#include "model/tokenizer/vocabulary.h"

namespace memdecay {

/// The vocabulary of a catalogue model ("qwen-0.5b"); nullopt when its file is not on this machine.
std::optional<Result<Vocabulary>> golden_vocabulary(const std::string& model);

/// The folder with lines.jsonl and <family>.jsonl.
std::string golden_folder();

}  // namespace memdecay
