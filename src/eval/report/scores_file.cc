#include "eval/report/scores_file.h"

#include <filesystem>
#include <fstream>

#include "core/check.h"
#include "sys/whole_file.h"

namespace memdecay {

using nlohmann::ordered_json;

Result<ScoresFile> ScoresFile::open(const std::string& path) {
  ScoresFile file(path);
  const Result<std::string> text = read_file(path);
  if (text.status().code() == StatusCode::kNotFound) return file;
  if (!text.ok()) return text.status();
  MEMDECAY_RETURN_IF_ERROR(file.read_lines(*text));
  return file;
}

Status ScoresFile::read_lines(std::string_view text) {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    MEMDECAY_RETURN_IF_ERROR(read_line(text.substr(begin, end - begin)));
  if (begin == text.size()) return Status();
  std::error_code error;
  std::filesystem::resize_file(path_, begin, error);
  if (!error) return Status();
  return make_status(StatusCode::kIoError, "{} cannot be written: {}", path_, error.message());
}

Status ScoresFile::read_line(std::string_view line) {
  const ordered_json json = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto has = [&](const char* name) { return json.is_object() && json.contains(name); };
  if (!has("key") || !has("session") || !json.at("session").is_string() || !has("scores")) {
    return make_status(StatusCode::kCorrupt,
                       "{} holds no scores of memdecay eval: move it away, or name another folder",
                       path_);
  }
  Result<CellScores> scores = parse_cell_scores(json.at("scores"));
  if (!scores.ok()) return scores.status().with_context(path_);
  scores_[{key_of_row(json.at("key")), json.at("session").get<std::string>()}] =
      std::move(scores).value();
  return Status();
}

const CellScores* ScoresFile::find(const ResultKey& key, const std::string& session) const {
  const auto found = scores_.find({key, session});
  return found == scores_.end() ? nullptr : &found->second;
}

Status ScoresFile::add(const ResultKey& key, const std::string& session, const CellScores& scores) {
  MEMDECAY_CHECK(find(key, session) == nullptr);
  const ordered_json json = cell_scores_json(scores);
  const ordered_json line = {{"key", key_json(key)}, {"session", session}, {"scores", json}};
  std::ofstream stream(path_, std::ios::binary | std::ios::app);
  stream << line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
  stream.close();
  if (!stream) return make_status(StatusCode::kIoError, "{} cannot be written", path_);
  // As they will be read again: rows must not depend on when a session was measured.
  MEMDECAY_ASSIGN_OR_RETURN((scores_[{key, session}]), parse_cell_scores(json));
  return Status();
}

}  // namespace memdecay
