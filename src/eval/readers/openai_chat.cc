// Conversations as chat requests carry them: {"messages": [...], "tools": [...]}, one or many; what
// `memdecay play` takes.
#include <string_view>

#include "eval/readers/chat_messages.h"
#include "eval/readers/run_format.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

bool recognise(const ordered_json& record) {
  return record.is_object() && record.contains("messages");
}

std::string first_user_text(const Trajectory& trajectory) {
  for (const ordered_json& message : trajectory.messages()) {
    if (message.at("role") == "user") return message.at("content").get<std::string>();
  }
  return {};
}

Status read(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    const ordered_json& record = document.records[i];
    MEMDECAY_ASSIGN_OR_RETURN(Trajectory trajectory,
                              trajectory_of(record, "messages", document.places[i]));
    if (record.contains("tools") && !record.at("tools").is_null()) {
      MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const tools,
                                list_member(record, "tools", trajectory.source));
      trajectory.conversation["tools"] = *tools;
    }
    trajectory.data_set = "chat";
    trajectory.format = "openai";
    const std::string task = label_member(record, "task_id");
    trajectory.task = task.empty() ? task_of_text(first_user_text(trajectory)) : task;
    contents.trajectories.push_back(std::move(trajectory));
  }
  return Status();
}

}  // namespace

const RunFormat kOpenAiFormat = {"openai", "chat requests with \"messages\"", recognise, read};

}  // namespace memdecay
