#include "sys/user_folders.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "core/check.h"

namespace memdecay {
namespace {

bool is_set(const char* value) {
  return value != nullptr && *value != '\0';
}

}  // namespace

Result<std::filesystem::path> cache_folder_of(const FolderEnvironment& environment) {
  if (is_set(environment.memdecay_cache)) {
    return std::filesystem::path(environment.memdecay_cache);
  }
  if (is_set(environment.xdg_cache_home)) {
    const std::filesystem::path base(environment.xdg_cache_home);
    if (base.is_absolute()) return base / "memdecay";
  }
  if (is_set(environment.home)) {
    return std::filesystem::path(environment.home) / ".cache" / "memdecay";
  }
  return make_status(StatusCode::kNotFound,
                     "no cache folder: neither MEMDECAY_CACHE, XDG_CACHE_HOME nor HOME is set");
}

Result<std::filesystem::path> cache_folder() {
  FolderEnvironment environment{std::getenv("MEMDECAY_CACHE"), std::getenv("XDG_CACHE_HOME"),
                                std::getenv("HOME")};
  passwd record{};
  passwd* found = nullptr;
  std::array<char, 16384> strings;
  if (!is_set(environment.home) &&
      getpwuid_r(getuid(), &record, strings.data(), strings.size(), &found) == 0 &&
      found != nullptr) {
    environment.home = record.pw_dir;
  }
  return cache_folder_of(environment);
}

Result<std::filesystem::path> cached_model_path(const std::string& name) {
  MEMDECAY_CHECK(!name.empty() && name.find('/') == std::string::npos);
  MEMDECAY_ASSIGN_OR_RETURN(const std::filesystem::path cache, cache_folder());
  return cache / "models" / (name + ".gguf");
}

}  // namespace memdecay
