// SWE-agent .traj files: {history: [chat messages with agent, action, ...], trajectory, info}.
//
// A demonstration (is_demo) is shown to the agent, not written by it. Runs on one issue are one
// task, whatever the command set: the task is the text of the issue.
#include <string_view>

#include "eval/readers/chat_messages.h"
#include "eval/readers/run_format.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

bool recognise(const ordered_json& record) {
  return record.is_object() && record.contains("history") && !record.contains("mistake_step") &&
         !record.contains("mistake_agent");
}

/// What the run is about: the first user text that is no demonstration, up to the instructions.
/// `messages` stand beside the history, in the common form.
std::string goal_of(const ordered_json& history, const ordered_json& messages) {
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (messages[i].at("role") != "user" || history[i].contains("is_demo")) continue;
    const std::string text = messages[i].at("content").get<std::string>();
    const std::size_t issue = text.find("ISSUE:");
    const std::size_t begin = issue == std::string::npos ? 0 : issue;
    const std::size_t end = std::min(text.find("INSTRUCTIONS:", begin), text.size());
    return text.substr(begin, end - begin);
  }
  return {};
}

Status read(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    const ordered_json& record = document.records[i];
    MEMDECAY_ASSIGN_OR_RETURN(Trajectory trajectory,
                              trajectory_of(record, "history", document.places[i]));
    trajectory.data_set = "coding_agent";
    trajectory.format = "swe_agent";
    trajectory.task = task_of_text(goal_of(record.at("history"), trajectory.messages()));
    contents.trajectories.push_back(std::move(trajectory));
  }
  return Status();
}

}  // namespace

const RunFormat kSweAgentFormat = {"swe_agent", "SWE-agent trajectories", recognise, read};

}  // namespace memdecay
