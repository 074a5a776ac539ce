// Whether somebody watches: a stream that is a terminal gets prompts and colours, a file or pipe
// plain text. Any thread.
#pragma once

#include <cstdio>

namespace memdecay {

bool is_terminal(std::FILE* stream);

}  // namespace memdecay
