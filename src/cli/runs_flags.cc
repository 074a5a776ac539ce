#include "cli/runs_flags.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/flag_checks.h"
#include "cli/standard_error.h"
#include "eval/runs/message_tokens.h"
#include "eval/runs/pick_sessions.h"

namespace memdecay {
namespace {

constexpr std::int64_t kMostTokens = 1'000'000;
/// One part in so many of the context is left to facts that are planted in a session and asked for.
constexpr std::int32_t kPartsForFacts = 6;

bool is_given(const CLI::Option* option) {
  return option != nullptr && option->count() > 0;
}

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
  sessions_option_ = command.add_option("--sessions", most_sessions, "most sessions of a data set")
                         ->check(whole_number(1, 10000))
                         ->capture_default_str();
  min_option_ = command.add_option("--min-tokens", chain.min_tokens, "shortest session")
                    ->check(whole_number(1, kMostTokens))
                    ->capture_default_str();
  max_option_ = command.add_option("--max-tokens", chain.max_tokens, "longest session")
                    ->check(whole_number(1, kMostTokens))
                    ->capture_default_str();
}

void RunsFlags::use_defaults(int most, std::int32_t min_tokens, std::int32_t max_tokens) {
  if (!is_given(sessions_option_)) most_sessions = most;
  if (!is_given(min_option_)) chain.min_tokens = min_tokens;
  if (!is_given(max_option_)) chain.max_tokens = std::max(max_tokens, chain.min_tokens);
  if (!is_given(min_option_)) chain.min_tokens = std::min(min_tokens, chain.max_tokens);
}

ChainOptions RunsFlags::chain_within(std::int32_t context_tokens, bool plants_facts) const {
  ChainOptions within = chain;
  std::int32_t longest = context_tokens;
  if (plants_facts) longest -= context_tokens / kPartsForFacts;
  if (is_given(min_option_)) longest = std::max(longest, within.min_tokens);
  if (is_given(max_option_) || within.max_tokens <= longest) return within;
  within.max_tokens = longest;
  if (!is_given(min_option_)) within.min_tokens = std::min(within.min_tokens, longest / 2);
  print_note(fmt::format("sessions have {} to {} tokens, since the model's context is {}",
                         within.min_tokens, within.max_tokens, context_tokens));
  return within;
}

Result<RunContents> RunsFlags::read() const {
  MEMDECAY_ASSIGN_OR_RETURN(RunContents runs, read_runs(paths));
  print_notes(runs.notes);
  return runs;
}

Result<std::vector<ChainedSession>> RunsFlags::sessions_of(const RunContents& runs,
                                                           const Engine& engine,
                                                           bool plants_facts) const {
  if (runs.trajectories.empty()) {
    return make_status(StatusCode::kInvalidArgument, "there are no recorded conversations in {}",
                       fmt::join(paths, ", "));
  }
  const ChainOptions within = chain_within(engine.context_tokens(), plants_facts);
  MEMDECAY_ASSIGN_OR_RETURN(
      Chains chains, chain_sessions(runs.trajectories, token_counter(engine.model()), within));
  print_notes(chains.notes);
  PickedSessions picked = pick_sessions(std::move(chains), engine.context_tokens(), most_sessions);
  print_notes(picked.notes);
  if (!picked.sessions.empty()) return std::move(picked.sessions);
  return make_status(StatusCode::kInvalidArgument,
                     "the runs in {} make no session of {} to {} tokens that a context of {} "
                     "holds; --min-tokens asks for less",
                     fmt::join(paths, ", "), within.min_tokens, within.max_tokens,
                     engine.context_tokens());
}

}  // namespace memdecay
