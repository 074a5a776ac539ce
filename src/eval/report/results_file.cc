#include "eval/report/results_file.h"

#include "sys/whole_file.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

std::string text_of(const ordered_json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_results(const ordered_json& json) {
  if (!json.is_object() || !json.contains("rows") || !json.at("rows").is_array()) return false;
  for (const ordered_json& row : json.at("rows")) {
    if (!row.is_object()) return false;
  }
  return true;
}

}  // namespace

ordered_json key_json(const ResultKey& key) {
  return {{"model", key.model},   {"policy", key.policy},     {"kv_format", key.kv_format},
          {"budget", key.budget}, {"data_set", key.data_set}, {"variant", key.variant}};
}

ResultKey key_of_row(const ordered_json& row) {
  return {text_of(row, "model"),  text_of(row, "policy"),   text_of(row, "kv_format"),
          text_of(row, "budget"), text_of(row, "data_set"), text_of(row, "variant")};
}

Result<ResultsFile> ResultsFile::open(const std::string& path) {
  ResultsFile file(path);
  const Result<std::string> text = read_file(path);
  if (text.status().code() == StatusCode::kNotFound) {
    file.json_["rows"] = ordered_json::array();
    return file;
  }
  if (!text.ok()) return text.status();
  file.json_ = ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (is_results(file.json_)) return file;
  return make_status(StatusCode::kCorrupt,
                     "{} is no results of memdecay eval: move it away, or name another folder",
                     path);
}

Status ResultsFile::add(const ResultKey& key, const ordered_json& values) {
  ordered_json row = key_json(key);
  row.update(values);
  for (ordered_json& known : json_.at("rows")) {
    if (key_of_row(known) != key) continue;
    known = std::move(row);
    return write();
  }
  json_.at("rows").push_back(std::move(row));
  return write();
}

Status ResultsFile::write() const {
  return replace_file(path_,
                      json_.dump(1, ' ', false, ordered_json::error_handler_t::replace) + '\n');
}

}  // namespace memdecay
