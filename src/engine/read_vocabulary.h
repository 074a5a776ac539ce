// The vocabulary of a model file, from its tokenizer.ggml.* metadata.
//
// Defaults for absent keys are those of the format: an SPM vocabulary adds BOS and a leading space,
// a BPE one adds neither. Copies every piece: milliseconds and a few MB for 262,144 of them.
#pragma once

#include "core/status.h"
#include "model/gguf/gguf_file.h"
#include "model/tokenizer/vocabulary.h"

namespace memdecay {

/// kUnsupported for a tokenizer model other than "gpt2" and "llama"; kCorrupt for values that
/// cannot be.
Result<Vocabulary> read_vocabulary(const GgufFile& file);

}  // namespace memdecay
