// tau-bench few-shot displays: {"messages_display": "user: ...\nassistant: ...\ntool: ..."}.
//
// "assistant: None" stands for a call whose text the display left out: it becomes no message.
#include <array>
#include <optional>
#include <string_view>

#include "eval/readers/chat_messages.h"
#include "eval/readers/run_format.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kSpeakers = {"user", "assistant", "tool"};

bool recognise(const ordered_json& record) {
  return record.is_object() && record.contains("messages_display");
}

/// Who speaks on a line that begins with a speaker's name, or nobody.
std::optional<std::string_view> speaker_of(std::string_view line) {
  for (const std::string_view speaker : kSpeakers) {
    if (line.starts_with(speaker) && line.substr(speaker.size()).starts_with(": ")) return speaker;
  }
  return std::nullopt;
}

void add(std::string_view speaker, std::string_view text, Trajectory& trajectory) {
  if (speaker.empty() || (speaker == "assistant" && text == "None")) return;
  add_message(trajectory, chat_message(std::string(speaker).c_str(), std::string(text)),
              speaker == "assistant");
}

void take_display(std::string_view display, Trajectory& trajectory) {
  std::string_view speaker;
  std::size_t begin = 0;  // of what the speaker says
  for (std::size_t line = 0; line < display.size();) {
    const std::size_t end = std::min(display.find('\n', line), display.size());
    if (const auto next = speaker_of(display.substr(line, end - line))) {
      if (!speaker.empty()) add(speaker, display.substr(begin, line - begin - 1), trajectory);
      speaker = *next;
      begin = line + next->size() + 2;
    }
    line = end + 1;
  }
  if (!speaker.empty()) add(speaker, display.substr(begin), trajectory);
}

Status read(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    Trajectory trajectory;
    trajectory.source = document.places[i];
    MEMDECAY_ASSIGN_OR_RETURN(
        const std::string display,
        text_member(document.records[i], "messages_display", trajectory.source));
    take_display(display, trajectory);
    if (trajectory.recorded.empty()) {
      return make_status(StatusCode::kCorrupt, "{}: the display has no line of a speaker",
                         trajectory.source);
    }
    trajectory.data_set = "service_display";
    trajectory.format = "tau_display";
    trajectory.task = task_of_text(display);
    contents.trajectories.push_back(std::move(trajectory));
  }
  return Status();
}

}  // namespace

const RunFormat kTauDisplayFormat = {"tau_display", "tau-bench few-shot displays", recognise, read};

}  // namespace memdecay
