#include "engine/model_catalogue.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "sys/subprocess.h"
#include "sys/user_folders.h"

namespace memdecay {

extern const char kModelCatalogueJson[];  // models/catalogue.json, embedded by CMake

namespace {

std::vector<CatalogueEntry> parse_catalogue() {
  const auto json = nlohmann::json::parse(kModelCatalogueJson);
  std::vector<CatalogueEntry> entries;
  for (const auto& model : json.at("models")) {
    entries.push_back({model.at("name"), model.at("title"), model.at("bytes")});
  }
  const std::string first = json.at("default");
  const auto chosen =
      std::find_if(entries.begin(), entries.end(),
                   [&](const CatalogueEntry& entry) { return entry.name == first; });
  MEMDECAY_CHECK(chosen != entries.end());
  std::rotate(entries.begin(), chosen, chosen + 1);
  return entries;
}

bool is_path(const std::string& model) {
  return model.find('/') != std::string::npos || model.ends_with(".gguf");
}

/// Runs the fetch program; its last line of output is the file's path.
Result<std::string> fetch(const std::string& model) {
  const char* program = std::getenv("MEMDECAY_FETCH");
  if (program == nullptr || *program == '\0') {
    return make_status(
        StatusCode::kNotFound,
        "the model {} is not in the cache; start memdecay through ./run, which fetches it, or name "
        "the path of a GGUF file",
        model);
  }
  MEMDECAY_ASSIGN_OR_RETURN(const CommandResult result, run_command({program, model}));
  if (result.exit_status != 0) {
    return make_status(StatusCode::kNotFound, "the model {} could not be fetched (status {})",
                       model, result.exit_status);
  }
  std::string output = result.output;
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output.substr(output.rfind('\n') + 1);
}

}  // namespace

const std::vector<CatalogueEntry>& model_catalogue() {
  static const std::vector<CatalogueEntry> entries = parse_catalogue();
  return entries;
}

std::string catalogue_names() {
  std::string names;
  for (const CatalogueEntry& entry : model_catalogue())
    names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

Result<std::string> resolve_model(const std::string& model) {
  if (model.starts_with("hf:")) return fetch(model);
  if (is_path(model)) {
    if (std::filesystem::exists(model)) return model;
    return make_status(StatusCode::kNotFound, "there is no file {}", model);
  }
  const auto& entries = model_catalogue();
  const auto entry =
      std::find_if(entries.begin(), entries.end(),
                   [&](const CatalogueEntry& candidate) { return candidate.name == model; });
  if (entry == entries.end()) {
    std::error_code unreadable;
    if (std::filesystem::exists(model, unreadable)) return model;
    return make_status(
        StatusCode::kNotFound,
        "no model is called {}; known are {}, hf:OWNER/REPO/FILE, and paths of GGUF files", model,
        catalogue_names());
  }
  MEMDECAY_ASSIGN_OR_RETURN(const std::filesystem::path path, cached_model_path(model));
  std::error_code error;
  if (std::filesystem::file_size(path, error) == entry->bytes && !error) return path.string();
  return fetch(model);
}

}  // namespace memdecay
