#include "eval/readers/read_runs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>

#include "eval/readers/chat_messages.h"
#include "eval/readers/run_text.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

const std::array<const RunFormat*, 9> kFormats = {
    &kTauBenchFormat,       &kTauDisplayFormat,   &kWebAgentFormat,
    &kSweAgentFormat,       &kMiniSweFormat,      &kMemoryChatFormat,
    &kMemoryQuestionFormat, &kMemoryAnswerFormat, &kOpenAiFormat};

bool is_trace(const ordered_json& record) {
  return record.is_object() && (record.contains("hash_ids") || record.contains("block_size"));
}

bool is_message(const ordered_json& record) {
  return record.is_object() && record.contains("role") && record.contains("content");
}

/// A bare list of messages is one conversation.
RunDocument as_conversation(RunDocument document) {
  ordered_json messages = ordered_json::array();
  for (ordered_json& message : document.records) messages.push_back(std::move(message));
  RunDocument one{document.place, {}, {document.place}};
  one.records.push_back(ordered_json{{"messages", std::move(messages)}});
  return one;
}

Status unknown_format(const std::string& place) {
  std::string known;
  for (const RunFormat* format : kFormats) {
    known += (known.empty() ? "" : ", ") + std::string(format->what);
  }
  return make_status(StatusCode::kUnsupported, "{} is no recorded run that is known here: {}",
                     place, known);
}

bool looks_like_json(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[');
}

struct FoundFile {
  std::string path;
  bool named = false;  // by the caller, not found in a folder
};

Result<std::vector<FoundFile>> files_of(std::span<const std::string> paths) {
  std::vector<FoundFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back({path, true});
      continue;
    }
    std::vector<FoundFile> below;
    auto entry = std::filesystem::recursive_directory_iterator(path, error);
    for (; !error && entry != std::filesystem::end(entry); entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_regular_file(ignored)) below.push_back({entry->path().string(), false});
    }
    if (error) {
      return make_status(StatusCode::kIoError, "the folder {} cannot be listed: {}", path,
                         error.message());
    }
    std::sort(below.begin(), below.end(),
              [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

/// A file of a folder that holds no run, or a damaged one, is noted; all else is a failure.
Status leave_out(const FoundFile& file, const Status& status, RunContents& contents) {
  const bool readable =
      status.code() == StatusCode::kUnsupported || status.code() == StatusCode::kCorrupt;
  if (file.named || !readable) return status;
  contents.notes.push_back(status.message() + "; left out");
  return Status();
}

template <typename T>
void append(std::vector<T> more, std::vector<T>& all) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Status read_file(const FoundFile& file, RunContents& contents) {
  Result<std::string> text = read_run_text(file.path);
  if (!text.ok()) return leave_out(file, text.status(), contents);
  if (!file.named && !looks_like_json(*text)) {
    contents.notes.push_back(file.path + " is no JSON and was left out");
    return Status();
  }
  RunContents of_file;
  const Status status = read_run_text_into(*text, file.path, of_file);
  if (!status.ok()) return leave_out(file, status, contents);
  append(std::move(of_file.trajectories), contents.trajectories);
  append(std::move(of_file.questions), contents.questions);
  append(std::move(of_file.notes), contents.notes);
  return Status();
}

/// Where a stretch with cut ends ("...my counter is 38 square feet.") stands, or npos.
std::size_t message_with(const Trajectory& trajectory, std::string_view source) {
  while (source.starts_with('.')) source.remove_prefix(1);
  while (source.ends_with('.')) source.remove_suffix(1);
  const ordered_json& messages = trajectory.messages();
  for (std::size_t i = 0; i < messages.size() && !source.empty(); ++i) {
    const std::string& content = messages[i].at("content").get_ref<const std::string&>();
    if (content.find(source) != std::string::npos) return i;
  }
  return std::string::npos;
}

bool attach(const LooseQuestion& question, std::vector<Trajectory>& trajectories) {
  for (Trajectory& trajectory : trajectories) {
    const std::size_t message = message_with(trajectory, question.source);
    if (message == std::string::npos) continue;
    trajectory.questions.push_back({question.text, question.answers, message});
    return true;
  }
  return false;
}

void join_questions(RunContents& contents) {
  std::map<std::string, LooseQuestion> by_id;
  for (LooseQuestion& half : contents.questions) {
    LooseQuestion& whole = by_id[half.id];
    whole.id = half.id;
    if (!half.text.empty()) whole.text = std::move(half.text);
    if (!half.answers.empty()) whole.answers = std::move(half.answers);
    if (!half.source.empty()) whole.source = std::move(half.source);
  }
  contents.questions.clear();
  for (auto& [id, question] : by_id) {
    const bool whole = !question.text.empty() && !question.answers.empty();
    if (whole && attach(question, contents.trajectories)) continue;
    contents.notes.push_back(
        fmt::format("the question {} was left out: {}", id,
                    whole ? "no conversation holds its source" : "question or answer is missing"));
    contents.questions.push_back(std::move(question));
  }
}

}  // namespace

Status read_run_text_into(std::string_view text, const std::string& place, RunContents& contents) {
  MEMDECAY_ASSIGN_OR_RETURN(RunDocument document, parse_run_document(text, place));
  const ordered_json& first = document.records.front();
  if (is_trace(first)) {
    return make_status(StatusCode::kUnsupported,
                       "{} is a trace of lengths and times without text: there is nothing to read",
                       place);
  }
  if (is_message(first)) document = as_conversation(std::move(document));
  for (const RunFormat* format : kFormats) {
    if (format->recognise(document.records.front())) return format->read(document, contents);
  }
  return unknown_format(place);
}

void finish_runs(RunContents& contents) {
  std::map<std::string, int> episodes;
  for (Trajectory& trajectory : contents.trajectories) {
    const std::string name = trajectory.data_set + "/" + trajectory.task;
    trajectory.id = fmt::format("{}/{}", name, episodes[name]++);
  }
  join_questions(contents);
}

Result<RunContents> read_runs(std::span<const std::string> paths) {
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<FoundFile> files, files_of(paths));
  RunContents contents;
  for (const FoundFile& file : files) {
    MEMDECAY_RETURN_IF_ERROR(read_file(file, contents));
  }
  finish_runs(contents);
  return contents;
}

}  // namespace memdecay
