// Trajectory: one recorded agent run as chat messages, whatever upstream format it came from.
//
// The conversation is what a chat template takes: {"messages": [...]} and "tools" where the run
// carries schemas. Every message has "role" (system, user, assistant, tool) and "content" as a
// text; a tool call is {"type": "function", "function": {"name", "arguments"}} with arguments as an
// object wherever the recording allows it. Text is the recording's, byte for byte, except that
// invalid UTF-8 is refused by the JSON reader. A plain value; any thread.
//
// Invariant: recorded.size() == number of messages, and recorded[i] only where message i is an
// assistant's.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace memdecay {

/// A question about a conversation that its recording brought along.
struct RecordedQuestion {
  std::string question;
  std::vector<std::string> answers;  ///< any of them is right
  std::size_t message = 0;           ///< where the answer stands in the conversation
};

struct Trajectory {
  std::string id;        ///< unique among the runs read together
  std::string task;      ///< episodes of one task repeat the same facts: split by this
  std::string data_set;  ///< "airline", "web_agent", "coding_agent", ...
  std::string format;    ///< the upstream format, e.g. "tau_bench"
  std::string source;    ///< file and place, for people
  nlohmann::ordered_json conversation;
  /// [messages]: 1 where an agent wrote this turn, so that it may be forced and scored.
  std::vector<std::uint8_t> recorded;
  std::vector<RecordedQuestion> questions;

  const nlohmann::ordered_json& messages() const { return conversation.at("messages"); }
};

}  // namespace memdecay
