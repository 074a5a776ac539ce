// The pre-tokenizer patterns that tokenizer.ggml.pre names.
//
// A pattern list is applied in stages: each stage cuts every piece of the stage before into its
// matches and the text between them. The patterns are the published ones of the models'
// tokenizer.json files. Pure, any thread.
#pragma once

#include <span>
#include <string_view>

namespace memdecay {

struct PrePatterns {
  std::span<const std::string_view> stages;  ///< empty: the name is not known
  /// A pre-token that is a piece as a whole becomes it without merging.
  bool whole_words_first = false;
};

PrePatterns pre_patterns(std::string_view name);

}  // namespace memdecay
