// Who&When runs: {question, history: [{role, content}], mistake_step, ...}, many agents in one log.
//
// The orchestrator is the agent: its thoughts are an assistant's text, "Orchestrator (-> X)" is its
// call of tool X, and what X says is the result. Steps of the orchestrator in a row make one
// assistant turn: its texts, then its calls. What it says to the agent "Assistant", and what that
// agent answers, is text too: both are written by a model.
#include <optional>
#include <string_view>

#include "eval/readers/chat_messages.h"
#include "eval/readers/run_format.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

bool recognise(const ordered_json& record) {
  return record.is_object() && record.contains("history") && record.contains("question") &&
         (record.contains("mistake_step") || record.contains("mistake_agent"));
}

enum class Speaker { kUser, kAgent, kTool };

Speaker speaker_of(std::string_view role) {
  if (role == "human" || role == "user" || role.ends_with("(termination condition)"))
    return Speaker::kUser;
  const bool agent = role.starts_with("Orchestrator") || role == "Assistant" || role == "assistant";
  return agent ? Speaker::kAgent : Speaker::kTool;
}

/// Whom "Orchestrator (-> X)" calls.
std::optional<std::string> called_tool(std::string_view role) {
  const std::size_t arrow = role.find("(-> ");
  if (arrow == std::string_view::npos || !role.ends_with(')')) return std::nullopt;
  std::string tool(role.substr(arrow + 4, role.size() - arrow - 5));
  if (tool == "Assistant") return std::nullopt;
  return tool;
}

class Turns {
 public:
  explicit Turns(Trajectory& trajectory) : trajectory_(trajectory) {}

  void take(std::string_view role, std::string content) {
    const Speaker speaker = speaker_of(role);
    if (speaker == Speaker::kAgent) return take_agent(role, std::move(content));
    flush();
    ordered_json message =
        chat_message(speaker == Speaker::kUser ? "user" : "tool", std::move(content));
    if (speaker == Speaker::kTool) message["name"] = std::string(role);
    add_message(trajectory_, std::move(message), false);
  }
  /// The assistant's turn is over.
  void flush() {
    if (text_.empty() && calls_.empty()) return;
    ordered_json message = chat_message("assistant", std::exchange(text_, {}));
    if (!calls_.empty()) message["tool_calls"] = std::exchange(calls_, ordered_json::array());
    add_message(trajectory_, std::move(message), true);
  }

 private:
  void take_agent(std::string_view role, std::string content) {
    if (const std::optional<std::string> tool = called_tool(role)) {
      const ordered_json arguments = {{"request", std::move(content)}};
      calls_.push_back(
          {{"type", "function"}, {"function", {{"name", *tool}, {"arguments", arguments}}}});
    } else {
      text_ += (text_.empty() ? "" : "\n\n") + content;
    }
  }

  Trajectory& trajectory_;
  std::string text_;
  ordered_json calls_ = ordered_json::array();
};

Result<Trajectory> read_one(const ordered_json& record, const std::string& place) {
  Trajectory trajectory;
  trajectory.source = place;
  MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const history,
                            list_member(record, "history", place));
  Turns turns(trajectory);
  for (std::size_t i = 0; i < history->size(); ++i) {
    const std::string here = fmt::format("{}, step {}", place, i);
    MEMDECAY_ASSIGN_OR_RETURN(const std::string role, text_member((*history)[i], "role", here));
    MEMDECAY_ASSIGN_OR_RETURN(std::string content, text_member((*history)[i], "content", here));
    turns.take(role, std::move(content));
  }
  turns.flush();
  if (trajectory.recorded.empty())
    return make_status(StatusCode::kCorrupt, "{} has no messages", place);
  trajectory.data_set = "web_agent";
  trajectory.format = "who_and_when";
  MEMDECAY_ASSIGN_OR_RETURN(const std::string question, text_member(record, "question", place));
  trajectory.task = task_of_text(question);
  return trajectory;
}

Status read(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    MEMDECAY_ASSIGN_OR_RETURN(Trajectory trajectory,
                              read_one(document.records[i], document.places[i]));
    contents.trajectories.push_back(std::move(trajectory));
  }
  return Status();
}

}  // namespace

const RunFormat kWebAgentFormat = {"who_and_when", "Who&When agent logs", recognise, read};

}  // namespace memdecay
