#include "cli/runs_flags.h"

#include <fmt/ranges.h>

#include "cli/flag_checks.h"
#include "cli/standard_error.h"
#include "eval/runs/message_tokens.h"
#include "eval/runs/pick_sessions.h"

namespace memdecay {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000;

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_note(note);
}

}  // namespace

void RunsFlags::add_to(CLI::App& command) {
  command.add_option("RUNS", paths, "files or folders of recorded runs")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void RunsFlags::add_sessions_to(CLI::App& command, int most) {
  most_sessions = most;
  command.add_option("--sessions", most_sessions, "most sessions of a data set")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  command.add_option("--min-tokens", chain.min_tokens, "shortest session")
      ->check(whole_number(1, kMostTokens))
      ->capture_default_str();
  command.add_option("--max-tokens", chain.max_tokens, "longest session")
      ->check(whole_number(1, kMostTokens))
      ->capture_default_str();
}

Result<RunContents> RunsFlags::read() const {
  MEMDECAY_ASSIGN_OR_RETURN(RunContents runs, read_runs(paths));
  print_notes(runs.notes);
  return runs;
}

Result<std::vector<ChainedSession>> RunsFlags::sessions_of(const RunContents& runs,
                                                           const Engine& engine) const {
  MEMDECAY_ASSIGN_OR_RETURN(
      Chains chains, chain_sessions(runs.trajectories, token_counter(engine.model()), chain));
  print_notes(chains.notes);
  std::vector<ChainedSession> sessions =
      pick_sessions(std::move(chains), engine.context_tokens(), most_sessions);
  if (!sessions.empty()) return sessions;
  return make_status(StatusCode::kInvalidArgument,
                     "the runs in {} make no session of {} to {} tokens that a context of {} "
                     "holds; --min-tokens asks for less",
                     fmt::join(paths, ", "), chain.min_tokens, chain.max_tokens,
                     engine.context_tokens());
}

}  // namespace memdecay
