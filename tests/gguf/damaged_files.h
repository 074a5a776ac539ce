// Damaged GGUF files, made from a small right one in ways that are the same in every run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace memdecay {

struct DamagedFile {
  std::string how;  ///< for messages: "dimension 3 is 9223372036854775808"
  std::vector<std::byte> bytes;
};

/// Cut off at every place where a field begins, and in the middle of each.
std::vector<DamagedFile> truncated_files();
/// One number of the header (a count, length, type, dimension, offset) replaced by a lie.
std::vector<DamagedFile> files_with_a_lie();
/// Metadata of wrong kinds: nested too deep, repeated, unprintable, impossible.
std::vector<DamagedFile> files_with_bad_metadata();
/// Tensors that overlap, repeat, are missing, unknown or of another shape or type.
std::vector<DamagedFile> files_with_bad_tensors();

}  // namespace memdecay
