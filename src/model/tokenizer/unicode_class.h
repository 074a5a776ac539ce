// Unicode classes in pre-tokenizer patterns, made the same with every release of PCRE2.
//
// PCRE2 10.42 knows Unicode 14; the tokenizers that the models were published with know 16. And
// PCRE2's \s takes U+180E, which is no white space. expand_unicode_classes() rewrites a published
// pattern so that \s, \S and \p{L N M P S Lu Ll Lm Lo} mean what they mean there. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace memdecay {

/// REQUIRES: \S stands outside of brackets, brackets are not nested.
std::string expand_unicode_classes(std::string_view pattern);

}  // namespace memdecay
