// Standard input, output and error as a program finds them: who is at the other end, and whether
// there is one at all.
#pragma once

#include <cstdio>

namespace memdecay {

/// Whether somebody watches: a terminal gets prompts and colours, a file or pipe plain text. Any
/// thread.
bool is_terminal(std::FILE* stream);

/// Gives those of descriptors 0, 1 and 2 that the caller closed an empty file that cannot be
/// written, so that the next file a program opens never becomes its standard output. Once, at the
/// start of main().
void fill_closed_standard_streams();

}  // namespace memdecay
