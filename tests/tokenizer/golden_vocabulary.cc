// Vocabularies for golden_test.cc from the model files in the user's cache folder.
#include <filesystem>

#include "engine/read_vocabulary.h"
#include "golden_test.h"
#include "model/gguf/gguf_file.h"
#include "sys/user_folders.h"

namespace memdecay {

std::optional<Result<Vocabulary>> golden_vocabulary(const std::string& model) {
  const Result<std::filesystem::path> path = cached_model_path(model);
  if (!path.ok() || !std::filesystem::exists(*path)) return std::nullopt;
  const Result<GgufFile> file = GgufFile::open(path->string());
  if (!file.ok()) return file.status();
  return read_vocabulary(*file);
}

std::string golden_folder() {
  return MEMDECAY_GOLDEN_FOLDER;
}

}  // namespace memdecay
