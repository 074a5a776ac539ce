// Names that stand for model files: the catalogue (models/catalogue.json, built in),
// "hf:OWNER/REPO/FILE", and paths.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace memdecay {

struct CatalogueEntry {
  std::string name;
  std::string title;        ///< one line for people
  std::uint64_t bytes = 0;  ///< of the model file
};

/// The built-in catalogue, default model first.
const std::vector<CatalogueEntry>& model_catalogue();

/// Its names, "a, b, c".
std::string catalogue_names();

/// The path of a model's file. A name of the catalogue or hf:... that is not in the cache yet is
/// fetched by the program that the environment variable MEMDECAY_FETCH names (./run sets it);
/// without it the failure says what to do. Anything with a slash, or ending in .gguf, is a path and
/// must exist; any other word that is no name is a path if a file is called so. kNotFound names
/// what is known.
Result<std::string> resolve_model(const std::string& model);

}  // namespace memdecay
