// user_folders: where this user's files of MemDecay live.
//
// The cache folder holds what can be fetched or computed again (models first of all). Its rules, in
// order: $MEMDECAY_CACHE as it is; $XDG_CACHE_HOME/memdecay, if that is an absolute path (the XDG
// base directory specification says to ignore others); $HOME/.cache/memdecay; the home folder of
// the password database. Empty variables count as unset. tools/fetch_model.py follows the same
// rules. Nothing here creates a folder. Reads the environment: call it from any thread while none
// sets it.
#pragma once

#include <filesystem>
#include <string>

#include "core/status.h"

namespace memdecay {

/// What the rules look at; a null pointer is a variable that is not set.
struct FolderEnvironment {
  const char* memdecay_cache = nullptr;
  const char* xdg_cache_home = nullptr;
  const char* home = nullptr;
};

/// The cache folder by the rules above, without the password database. kNotFound when nothing says.
Result<std::filesystem::path> cache_folder_of(const FolderEnvironment& environment);

/// The cache folder of this process's user.
Result<std::filesystem::path> cache_folder();

/// Where the model `name` of the catalogue lies once it is fetched: <cache>/models/<name>.gguf.
/// REQUIRES: a catalogue name, that is no path.
Result<std::filesystem::path> cached_model_path(const std::string& name);

}  // namespace memdecay
