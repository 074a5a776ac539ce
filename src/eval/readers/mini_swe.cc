// Agent traces of LLM calls: lines of {timestamp, input, output, session_id}; the input of a call
// goes on where the one before it ended.
//
// What a call's input adds is the tool's result for the call before; outputs are the agent's turns.
// A run whose input does not go on (its agent compacted the history) is left out with a note.
#include <algorithm>
#include <map>
#include <string_view>

#include "eval/readers/chat_messages.h"
#include "eval/readers/run_format.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

bool recognise(const ordered_json& record) {
  return record.is_object() && record.contains("input") && record.contains("output") &&
         record.contains("timestamp");
}

struct LlmCall {
  double timestamp = 0;
  std::size_t record = 0;
  std::string input;
  std::string output;
  std::string place;
};

std::string_view without_leading_newlines(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::string_view goal_of(std::string_view input) {
  const std::size_t end = input.find("</pr_description>");
  return end == std::string_view::npos ? input : input.substr(0, end);
}

/// Seconds or any other unit, with or without a fraction.
Result<double> timestamp_of(const ordered_json& record, const std::string& place) {
  const ordered_json& time = record.at("timestamp");
  if (time.is_number()) return time.get<double>();
  MEMDECAY_ASSIGN_OR_RETURN(const std::int64_t whole, number_member(record, "timestamp", place));
  return static_cast<double>(whole);
}

/// kUnsupported for a run whose history was compacted.
Result<Trajectory> read_session(std::vector<LlmCall>& calls) {
  std::sort(calls.begin(), calls.end(), [](const LlmCall& a, const LlmCall& b) {
    return std::pair(a.timestamp, a.record) < std::pair(b.timestamp, b.record);
  });
  Trajectory trajectory;
  trajectory.source = calls.front().place;
  trajectory.data_set = "coding_agent";
  trajectory.format = "mini_swe";
  trajectory.task = task_of_text(goal_of(calls.front().input));
  std::string_view before;
  for (const LlmCall& call : calls) {
    if (!std::string_view(call.input).starts_with(before)) {
      return make_status(StatusCode::kUnsupported,
                         "{}: the input does not go on where the call before it ended", call.place);
    }
    const std::string_view added =
        without_leading_newlines(std::string_view(call.input).substr(before.size()));
    add_message(trajectory, chat_message(before.empty() ? "user" : "tool", std::string(added)),
                false);
    add_message(trajectory, chat_message("assistant", call.output), true);
    before = call.input;
  }
  return trajectory;
}

Status read(const RunDocument& document, RunContents& contents) {
  std::map<std::string, std::vector<LlmCall>> sessions;
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    const ordered_json& record = document.records[i];
    LlmCall call;
    call.place = document.places[i];
    call.record = i;
    if (!record.is_object() || !record.contains("timestamp"))
      return make_status(StatusCode::kCorrupt, "{}: \"timestamp\" is missing", call.place);
    MEMDECAY_ASSIGN_OR_RETURN(call.timestamp, timestamp_of(record, call.place));
    MEMDECAY_ASSIGN_OR_RETURN(call.input, text_member(record, "input", call.place));
    MEMDECAY_ASSIGN_OR_RETURN(call.output, text_member(record, "output", call.place));
    sessions[label_member(record, "session_id")].push_back(std::move(call));
  }
  for (auto& [session, calls] : sessions) {
    Result<Trajectory> trajectory = read_session(calls);
    if (trajectory.ok()) {
      contents.trajectories.push_back(std::move(trajectory).value());
    } else {
      contents.notes.push_back(trajectory.status().message() + "; the run was left out");
    }
  }
  return Status();
}

}  // namespace

const RunFormat kMiniSweFormat = {"mini_swe", "traces of LLM calls with their inputs", recognise,
                                  read};

}  // namespace memdecay
