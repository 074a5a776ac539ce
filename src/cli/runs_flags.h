// RunsFlags: recorded runs as commands take them, and how their episodes become sessions.
//
// eval and calibrate share it. What was left out or cut is told on stderr as notes. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "eval/readers/read_runs.h"
#include "eval/runs/chained_session.h"

namespace memdecay {

struct RunsFlags {
  std::vector<std::string> paths;  ///< files or folders
  int most_sessions = 0;           ///< of a data set
  ChainOptions chain;

  /// RUNS, for what needs the runs alone.
  void add_to(CLI::App& command);
  /// --sessions (`most` where nobody says), --min-tokens and --max-tokens beside it.
  void add_sessions_to(CLI::App& command, int most);

  /// Other values for those that nobody gave.
  void use_defaults(int most, std::int32_t min_tokens, std::int32_t max_tokens);

  Result<RunContents> read() const;
  /// The first sessions of each data set that the engine can hold; kInvalidArgument where there is
  /// none at all. Lengths that nobody gave are cut to the engine's context, less a part where facts
  /// are to be planted in the sessions and asked for.
  Result<std::vector<ChainedSession>> sessions_of(const RunContents& runs, const Engine& engine,
                                                  bool plants_facts) const;

 private:
  ChainOptions chain_within(std::int32_t context_tokens, bool plants_facts) const;

  const CLI::Option* sessions_option_ = nullptr;
  const CLI::Option* min_option_ = nullptr;
  const CLI::Option* max_option_ = nullptr;
};

}  // namespace memdecay
