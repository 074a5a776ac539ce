// The upstream formats of recorded runs: one reader a file, told apart by what a record holds.
//
// recognise() looks at the first record only and at the members it has, never at file names; read()
// then reads every record or says which one is damaged (kCorrupt with its place). Readers fill
// Trajectory::{data_set, format, task, conversation, recorded}; ids are given by read_runs.h.
// Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/status.h"
#include "eval/readers/run_document.h"
#include "eval/runs/trajectory.h"

namespace memdecay {

/// A question or an answer of a file of its own, joined to its conversation later.
struct LooseQuestion {
  std::string id;
  std::string text;                  ///< the question; empty in a file of answers
  std::vector<std::string> answers;  ///< empty in a file of questions
  std::string source;                ///< a stretch of the conversation, "..." where it is cut
};

struct RunContents {
  std::vector<Trajectory> trajectories;
  std::vector<LooseQuestion> questions;
  std::vector<std::string> notes;  ///< what was left out, one sentence each
};

struct RunFormat {
  const char* name;
  const char* what;  ///< in words, for the list of what is known
  bool (*recognise)(const nlohmann::ordered_json& record);
  Status (*read)(const RunDocument& document, RunContents& contents);
};

extern const RunFormat kTauBenchFormat;        ///< service episodes with policy, calls and results
extern const RunFormat kTauDisplayFormat;      ///< service episodes as displayed text
extern const RunFormat kWebAgentFormat;        ///< Who&When: an orchestrator and its surfers
extern const RunFormat kSweAgentFormat;        ///< SWE-agent .traj
extern const RunFormat kMiniSweFormat;         ///< LLM calls with growing inputs
extern const RunFormat kMemoryChatFormat;      ///< BFCL memory conversations
extern const RunFormat kMemoryQuestionFormat;  ///< their questions
extern const RunFormat kMemoryAnswerFormat;    ///< and answers
extern const RunFormat kOpenAiFormat;          ///< {"messages", "tools"}

}  // namespace memdecay
