// Small files as a whole: settings, measurements, reports, prompts.
//
// Not for models (mapped_file.h) nor for what grows while it is written. Any thread; two processes
// may replace the same file at once, and one of them wins. Cost: O(bytes), all of them in memory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memdecay {

/// Every byte of a file, or of what a pipe brings. kNotFound where nothing is there, else kIoError.
Result<std::string> read_file(const std::filesystem::path& path);

/// Writes a file beside the old one and puts it in its place, so that neither a reader nor a crash
/// meets half of it. What stands there and is no regular file (a pipe, a device, a link) is written
/// into instead. kIoError leaves what was there before.
Status replace_file(const std::filesystem::path& path, std::string_view bytes);

/// Makes a folder and those above it; one that is there already is fine. kIoError.
Status make_folder(const std::filesystem::path& folder);

}  // namespace memdecay
