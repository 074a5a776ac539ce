// What a file that is not a readable GGUF file is, as far as its first bytes tell: for messages.
#pragma once

#include <cstddef>
#include <span>

#include "core/status.h"

namespace memdecay {

/// OK when `bytes` begin as a little-endian GGUF file of version 2 or 3; else why not, with a hint
/// where the beginning is that of a well-known other kind of file. Pure.
Status check_gguf_kind(std::span<const std::byte> bytes);

}  // namespace memdecay
