// BFCL memory files, JSON Lines: conversations of user turns, questions about them, and answers
// with the sentence they stand in. Three files, joined by id and by that sentence (read_runs.cc).
//
// The recordings have no assistant turns; a short acknowledgement stands for each, so that every
// chat template accepts the conversation. It does not count as recorded.
#include <algorithm>

#include "eval/readers/chat_messages.h"
#include "eval/readers/run_format.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

bool is_question(const ordered_json& record) {
  return record.is_object() && record.contains("question") && record.at("question").is_array() &&
         record.contains("involved_classes");
}

bool is_answer(const ordered_json& record) {
  return record.is_object() && record.contains("ground_truth") && record.contains("source") &&
         !record.contains("question");
}

bool is_conversation(const ordered_json& record) {
  return record.is_object() && record.contains("question") && record.at("question").is_array() &&
         record.contains("topic");
}

/// "memory_prereq_0-customer-0" -> "customer".
std::string scenario_of(const std::string& id) {
  const std::size_t first = id.find('-');
  if (first == std::string::npos) return id;
  return id.substr(first + 1, id.find('-', first + 1) - first - 1);
}

/// Calls `take` with every message of a list of turns, each a list of messages.
template <typename Take>
Status walk_turns(const ordered_json& record, const std::string& place, const Take& take) {
  MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const turns,
                            list_member(record, "question", place));
  for (const ordered_json& turn : *turns) {
    if (!turn.is_array()) return make_status(StatusCode::kCorrupt, "{}: a turn is no list", place);
    for (const ordered_json& message : turn) {
      MEMDECAY_ASSIGN_OR_RETURN(ordered_json clean, clean_message(message, place));
      take(std::move(clean));
    }
  }
  return Status();
}

Status read_conversations(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    Trajectory trajectory;
    trajectory.source = document.places[i];
    const auto take = [&](ordered_json message) {
      add_message(trajectory, std::move(message), false);
      add_message(trajectory, chat_message("assistant", "Noted."), false);
    };
    MEMDECAY_RETURN_IF_ERROR(walk_turns(document.records[i], trajectory.source, take));
    if (trajectory.recorded.empty())
      return make_status(StatusCode::kCorrupt, "{} has no messages", trajectory.source);
    trajectory.data_set = "memory_chat";
    trajectory.format = "bfcl_memory";
    trajectory.task = scenario_of(label_member(document.records[i], "id")) + "-" +
                      label_member(document.records[i], "topic");
    contents.trajectories.push_back(std::move(trajectory));
  }
  return Status();
}

Status read_questions(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    LooseQuestion question;
    question.id = label_member(document.records[i], "id");
    const auto take = [&](const ordered_json& message) {
      question.text += message.at("content").get_ref<const std::string&>();
    };
    MEMDECAY_RETURN_IF_ERROR(walk_turns(document.records[i], document.places[i], take));
    contents.questions.push_back(std::move(question));
  }
  return Status();
}

Status read_answers(const RunDocument& document, RunContents& contents) {
  for (std::size_t i = 0; i < document.records.size(); ++i) {
    const ordered_json& record = document.records[i];
    LooseQuestion answer;
    answer.id = label_member(record, "id");
    MEMDECAY_ASSIGN_OR_RETURN(answer.source, text_member(record, "source", document.places[i]));
    MEMDECAY_ASSIGN_OR_RETURN(const ordered_json* const truths,
                              list_member(record, "ground_truth", document.places[i]));
    for (const ordered_json& truth : *truths) {
      if (truth.is_string()) answer.answers.push_back(truth.get<std::string>());
    }
    contents.questions.push_back(std::move(answer));
  }
  return Status();
}

}  // namespace

const RunFormat kMemoryChatFormat = {"bfcl_memory", "BFCL memory conversations", is_conversation,
                                     read_conversations};
const RunFormat kMemoryQuestionFormat = {"bfcl_questions", "BFCL memory questions", is_question,
                                         read_questions};
const RunFormat kMemoryAnswerFormat = {"bfcl_answers", "BFCL memory answers", is_answer,
                                       read_answers};

}  // namespace memdecay
