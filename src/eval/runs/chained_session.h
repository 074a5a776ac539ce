// Chained sessions: short recorded episodes under one policy text, one after another, as an agent
// works through a shift of customers.
//
// The policy text (the leading system messages, and the tools) stands once, then come the other
// messages of episode after episode. Near-duplicates are then real: many customers, many codes.
//   - Only episodes with the same policy text and data set share a session; having none counts as
//     the same. A session never holds two episodes of one task: they repeat the same facts.
//   - Tasks, not episodes, are divided into development and test.
//   - Every session has from min_tokens to max_tokens, at a target drawn evenly between; an episode
//     longer than max_tokens is a session of its own, cut at a message border (cut_messages says
//     what fell off); what is left over and too short is a session with is_short.
//   - Same runs, options and tokenizer: the same sessions.
// Pure, any thread. Cost: one rendering an episode.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/runs/message_tokens.h"
#include "eval/runs/trajectory.h"

namespace memdecay {

enum class Split : std::uint8_t { kAll, kDevelopment, kTest };

struct ChainOptions {
  std::int32_t min_tokens = 8000;
  std::int32_t max_tokens = 20000;
  std::uint64_t seed = 1;
  Split split = Split::kAll;
  double development_share = 0.5;  ///< of the tasks
};

/// Where a message of a session came from.
struct MessageSource {
  std::int32_t episode = -1;  ///< into ChainedSession::episodes; -1 for the policy text
  std::int32_t message = 0;   ///< in that episode's trajectory
};

struct ChainedSession {
  std::string id;
  std::string data_set;
  nlohmann::ordered_json conversation;
  std::vector<MessageSource> sources;   ///< [messages]
  std::vector<std::uint8_t> recorded;   ///< [messages]
  std::vector<std::int32_t> tokens_of;  ///< [messages]
  std::vector<std::string> episodes;    ///< ids, in order
  std::vector<std::string> tasks;       ///< [episodes]
  std::int32_t tokens = 0;
  std::int32_t cut_messages = 0;
  bool is_short = false;
};

struct Chains {
  std::vector<ChainedSession> sessions;
  std::vector<std::string> notes;  ///< what was cut or left out, one sentence each
};

/// kInvalidArgument for options that contradict each other; else what counting says is wrong.
Result<Chains> chain_sessions(std::span<const Trajectory> runs, const CountMessageTokens& count,
                              const ChainOptions& options);

/// The split of a task: by its name and the seed only.
Split split_of_task(const std::string& task, const ChainOptions& options);

}  // namespace memdecay
