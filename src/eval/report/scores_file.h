// ScoresFile: scores.jsonl of `memdecay eval`, one line a cell and session, so that a run that was
// interrupted, or asked for more sessions, measures only what it lacks.
//
// A line is {"key": {...}, "session": NAME, "scores": {...}}. Lines are appended and flushed; a
// last line that a crash cut short is dropped when the file is opened, anything else that cannot be
// read is kCorrupt. One writer. Cost: O(file) to open, O(line) to add.
#pragma once

#include <map>
#include <string>

#include "core/status.h"
#include "eval/report/cell_scores.h"
#include "eval/report/results_file.h"

namespace memdecay {

class ScoresFile {
 public:
  /// A missing file is an empty one.
  static Result<ScoresFile> open(const std::string& path);

  /// Null where that session of the cell was not scored. Valid until the next add() of the same.
  const CellScores* find(const ResultKey& key, const std::string& session) const;
  /// kIoError when the file cannot be written. REQUIRES: find() has none.
  Status add(const ResultKey& key, const std::string& session, const CellScores& scores);

 private:
  explicit ScoresFile(std::string path) : path_(std::move(path)) {}
  Status read_lines(std::string_view text);
  Status read_line(std::string_view line);

  std::string path_;
  std::map<std::pair<ResultKey, std::string>, CellScores> scores_;
};

}  // namespace memdecay
