#include "eval/cells/evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/text_hash.h"
#include "eval/report/row_values.h"

namespace memdecay {
namespace {

ResultKey key_of(const EvaluationTask& run, const MemoryCell& cell) {
  std::vector<std::string> variants;
  if (run.options.label_noise > 0)
    variants.push_back(fmt::format("label noise {:g} %", 100 * run.options.label_noise));
  if (run.options.after_the_fact) variants.emplace_back("after the fact");
  if (run.options.seed != SessionEvalOptions().seed)
    variants.push_back(fmt::format("seed {}", run.options.seed));
  return {run.model,        cell.policy,  cell.kv_format,
          cell.budget.text, run.data_set, fmt::format("{}", fmt::join(variants, ", "))};
}

/// What scores are of: the session, and the policy's settings where its name does not say them all.
std::string scores_name(const std::string& session, const MemoryCell& cell) {
  return cell.version.empty() ? session : session + "#" + cell.version;
}

/// Names a session by all that its scores depend on beside the cell.
std::string session_name(const ChainedSession& session, const SessionEvalOptions& options) {
  const std::uint64_t text = text_hash(session.conversation.dump(), options.seed);
  return fmt::format("{}@{:016x}{}", session.id, text, options.asks_for_facts ? "+facts" : "");
}

SessionEvalOptions session_options(const EvaluationTask& run, std::size_t session) {
  SessionEvalOptions options = run.options;
  options.seed += session;
  options.asks_for_facts = !options.after_the_fact &&
                           session < static_cast<std::size_t>(std::max(0, run.recall_sessions));
  return options;
}

/// A task's sessions by the names of their scores.
std::vector<std::string> session_names(const EvaluationTask& run) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < run.sessions.size(); ++i)
    names.push_back(session_name(*run.sessions[i], session_options(run, i)));
  return names;
}

std::string no_score_note(const MemoryCell& cell, const std::string& session,
                          const Status& reason) {
  return fmt::format("{} in {}{}{} has no score in session {}: {}", cell.policy, cell.kv_format,
                     cell.budget.text.empty() ? "" : " within ", cell.budget.text, session,
                     reason.message());
}

/// Whether some cell was to be asked for facts, and none was.
bool lacks_room_for_facts(std::span<const MemoryCell> cells, const SessionScores& scores) {
  bool asks = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].is_oracle() || !scores[i].ok()) continue;
    if (!scores[i]->probes.empty()) return false;
    asks = true;
  }
  return asks;
}

std::vector<MemoryCell> missing_cells(const EvaluationTask& run, const std::string& session,
                                      const ScoresFile& scores) {
  std::vector<MemoryCell> missing;
  for (const MemoryCell& cell : run.cells)
    if (scores.find(key_of(run, cell), scores_name(session, cell)) == nullptr)
      missing.push_back(cell);
  return missing;
}

/// Scores one session in the cells that lack it, and says which have scores now.
Result<std::vector<MemoryCell>> score_session(Engine& engine, const EvaluationTask& run,
                                              std::size_t session, const std::string& name,
                                              ScoresFile& scores,
                                              const EvaluationListener& listener) {
  const std::vector<MemoryCell> missing = missing_cells(run, name, scores);
  std::vector<MemoryCell> scored;
  if (missing.empty()) return scored;
  const SessionEvalOptions options = session_options(run, session);
  MEMDECAY_ASSIGN_OR_RETURN(
      const SessionScores results,
      evaluate_session(engine, *run.sessions[session], missing, options,
                       [&](double share) { listener.on_progress(session, share); }));
  if (options.asks_for_facts && lacks_room_for_facts(missing, results))
    listener.on_note(
        fmt::format("session {} leaves no room for facts in the context, so none are asked for",
                    run.sessions[session]->id));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (!results[i].ok()) {
      listener.on_note(no_score_note(missing[i], run.sessions[session]->id, results[i].status()));
      continue;
    }
    MEMDECAY_RETURN_IF_ERROR(
        scores.add(key_of(run, missing[i]), scores_name(name, missing[i]), *results[i]));
    scored.push_back(missing[i]);
  }
  return scored;
}

/// The row of a cell from all of the task's sessions that it has scores of.
Status write_row(const EvaluationTask& run, const MemoryCell& cell,
                 std::span<const std::string> names, const EvaluationFiles& files) {
  std::vector<CellScores> sessions;
  for (const std::string& name : names) {
    const CellScores* const known = files.scores.find(key_of(run, cell), scores_name(name, cell));
    if (known != nullptr) sessions.push_back(*known);
  }
  if (sessions.empty()) return Status();
  return files.results.add(key_of(run, cell), row_values(sessions));
}

}  // namespace

std::vector<double> missing_tokens(const EvaluationTask& run, const ScoresFile& scores) {
  const std::vector<std::string> names = session_names(run);
  std::vector<double> tokens;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t cells = missing_cells(run, names[i], scores).size();
    tokens.push_back(static_cast<double>(cells) * run.sessions[i]->tokens);
  }
  return tokens;
}

Status evaluate_data_set(Engine& engine, const EvaluationTask& run, const EvaluationFiles& files,
                         const EvaluationListener& listener) {
  const std::vector<std::string> names = session_names(run);
  // Rows of what was scored in earlier runs, which may have ended before they were written.
  for (const MemoryCell& cell : run.cells)
    MEMDECAY_RETURN_IF_ERROR(write_row(run, cell, names, files));
  for (std::size_t i = 0; i < run.sessions.size(); ++i) {
    MEMDECAY_ASSIGN_OR_RETURN(const std::vector<MemoryCell> scored,
                              score_session(engine, run, i, names[i], files.scores, listener));
    for (const MemoryCell& cell : scored)
      MEMDECAY_RETURN_IF_ERROR(write_row(run, cell, names, files));
  }
  return Status();
}

}  // namespace memdecay
