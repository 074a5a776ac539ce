// ResultsFile: results.json of `memdecay eval`, one row a measured cell, kept while a run goes on.
//
// docs/formats/results.md says what a row holds. A row is named by its key: model, policy, kv
// format, budget, data set and variant; a run that was interrupted finds the rows it has and does
// the others. Every add() writes the whole file beside the old one and puts it in its place, so
// a reader or a crash never meets half a file. One writer. Cost: O(file) a row.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace memdecay {

struct ResultKey {
  std::string model;
  std::string policy;
  std::string kv_format;
  std::string budget;  ///< as asked for: "25%" or bytes
  std::string data_set;
  std::string variant;  ///< "" for the plain run; "label noise 10 %", "after the fact", ...
  friend auto operator<=>(const ResultKey&, const ResultKey&) = default;
};

class ResultsFile {
 public:
  /// Reads what is there; a missing file is an empty one. kCorrupt for a file that is no results.
  static Result<ResultsFile> open(const std::string& path);

  /// {"rows": [...]}
  const nlohmann::ordered_json& json() const { return json_; }
  std::size_t rows() const { return json_.at("rows").size(); }
  /// Adds a row and writes the file. `values` is an object of metrics and series; a row with the
  /// same key is replaced. kIoError when the file cannot be written.
  Status add(const ResultKey& key, const nlohmann::ordered_json& values);

 private:
  explicit ResultsFile(std::string path) : path_(std::move(path)) {}
  Status write() const;

  std::string path_;
  nlohmann::ordered_json json_;
};

/// {"model": ..., ...}: every member of the key.
nlohmann::ordered_json key_json(const ResultKey& key);
/// The key that a row carries; members that are missing are empty.
ResultKey key_of_row(const nlohmann::ordered_json& row);

}  // namespace memdecay
