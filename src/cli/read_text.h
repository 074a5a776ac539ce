// Whole files and stdin as bytes.
#pragma once

#include <string>

#include "core/status.h"

namespace memdecay {

/// Every byte of a file; "-" is stdin. kNotFound or kIoError with the path.
Result<std::string> read_text(const std::string& path);

}  // namespace memdecay
