// Agent traces of LLM calls: lines of {timestamp, input, output, session_id}; the input of a call
// goes on where the one before it ended.
//
// What a call's input adds is the tool's result for the call before; outputs are the agent's turns.
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
  std::int64_t timestamp = 0;
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
      return make_status(StatusCode::kCorrupt,
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
    MEMDECAY_ASSIGN_OR_RETURN(call.timestamp, number_member(record, "timestamp", call.place));
    MEMDECAY_ASSIGN_OR_RETURN(call.input, text_member(record, "input", call.place));
    MEMDECAY_ASSIGN_OR_RETURN(call.output, text_member(record, "output", call.place));
    sessions[label_member(record, "session_id")].push_back(std::move(call));
  }
  for (auto& [session, calls] : sessions) {
    MEMDECAY_ASSIGN_OR_RETURN(Trajectory trajectory, read_session(calls));
    contents.trajectories.push_back(std::move(trajectory));
  }
  return Status();
}

}  // namespace

const RunFormat kMiniSweFormat = {"mini_swe", "traces of LLM calls with their inputs", recognise,
                                  read};

}  // namespace memdecay
