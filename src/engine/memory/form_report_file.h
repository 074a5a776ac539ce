// Form reports on disk: what was measured about a model once is read the next time.
//
// One small JSON file a model, FOLDER/<fingerprint>.forms.json. A fingerprint is of the model
// file's size and of 64 blocks of it, evenly spread, its first and last among them: cheap, and
// another model or another quantization of it has another one. A file that is damaged, of another
// version, or says what no measurement gives, counts as missing; it is replaced as a whole.
// Any thread. Cost: 256 KiB read for a fingerprint.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/status.h"
#include "engine/memory/form_check.h"

namespace memdecay {

/// 16 hexadecimal digits. kNotFound or kIoError where the file cannot be read.
Result<std::string> file_fingerprint(const std::string& path);

/// Nothing where there is none that can be used.
std::optional<FormReport> read_form_report(const std::filesystem::path& folder,
                                           const std::string& fingerprint);
/// Makes the folder where it is missing. kIoError says what failed.
Status write_form_report(const std::filesystem::path& folder, const std::string& fingerprint,
                         const FormReport& report);

}  // namespace memdecay
