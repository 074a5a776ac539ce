// Recall probes: facts planted in a session, asked for later with a known answer.
//
// Facts are rows "record ID: code CODE" whose ids differ from one another in one or two digits, so
// that only exact memory answers. Each probe is planted where text of its region stands:
//   kSystem   a note at the end of the policy text        kDecision  "Decision: ..." in a user turn
//   kTool     the first lines of a tool result            kRecent    a remark in a user turn
//   kOrdinary a line in the middle of long tool output (or of an assistant's text)
// with decoys of the same family around it. The question is a user message of its own; the answer
// is forced, so a probe is scored by the probability of its answer's tokens, without sampling.
// Ask each question on a fork of the session: answers would help each other otherwise.
// Goal probes ask for a reference in the first user turn, instruction probes for the code word of
// one of several numbered instructions in the policy text.
//
// Depth is the share of the session's tokens before the fact, age the tokens between the fact and
// the question: ask_at below 1 asks before the session is over, so depth and age differ.
// Planting adds text to messages, never messages: sources and numbers of messages stay.
// Same session and options: the same probes. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "eval/runs/chained_session.h"
#include "policy/region.h"

namespace memdecay {

enum class ProbeKind : std::uint8_t { kFact, kGoal, kInstruction };
const char* probe_kind_name(ProbeKind kind);

struct ProbeOptions {
  std::uint64_t seed = 1;
  std::vector<double> depths = {0.1, 0.3, 0.5, 0.7, 0.9};
  std::vector<double> ask_at = {1.0};  ///< shares of the session after which facts are asked for
  std::int32_t decoys = 7;             ///< rows with near-duplicate ids around each fact
  std::int32_t instructions = 4;
};

struct RecallProbe {
  ProbeKind kind = ProbeKind::kFact;
  Region region = Region::kOrdinary;
  std::int32_t number = 0;       ///< of the instruction, or of the fact
  double depth = 0;              ///< as it came out
  std::int32_t planted_in = 0;   ///< message
  std::int32_t asked_after = 0;  ///< the question comes after this message
  std::int32_t age_tokens = 0;   ///< between planting and asking, before planting's own text
  std::string question;          ///< content of the user message
  std::string reply;             ///< content of the assistant message; it ends with the answer
  std::string answer;            ///< what must be right
};

struct ProbedSession {
  ChainedSession session;  ///< with the facts in it; its token counts are those before planting
  std::vector<RecallProbe> probes;
  std::vector<std::string> notes;  ///< regions without a place in this session
};

/// kInvalidArgument for shares outside [0, 1] or negative counts.
Result<ProbedSession> plant_probes(ChainedSession session, const ProbeOptions& options);

/// The session up to where the probe asks, with question and reply as its last two messages.
nlohmann::ordered_json asked_conversation(const ProbedSession& probed, const RecallProbe& probe);

}  // namespace memdecay
