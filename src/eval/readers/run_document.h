// RunDocument: the records of a run file, as JSON, each with its place for error sentences.
//
// A file is one JSON value or JSON Lines, told apart by its text: a first line that is a whole
// JSON value with more text after it makes lines. A single array stands for its elements. What the
// records mean is up to the readers (run_format.h).
// Pure functions, any thread. O(bytes).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace memdecay {

struct RunDocument {
  std::string place;  ///< the file
  std::vector<nlohmann::ordered_json> records;
  std::vector<std::string> places;  ///< [records]: "file", "file, line 3" or "file, element 3"
};

/// kCorrupt for text that is no JSON, or holds nothing.
Result<RunDocument> parse_run_document(std::string_view text, const std::string& place);

}  // namespace memdecay
