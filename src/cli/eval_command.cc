#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "eval/evaluation.h"
#include "eval/readers/read_runs.h"
#include "eval/report/html_report.h"
#include "eval/report/results_file.h"
#include "eval/runs/chained_session.h"
#include "eval/runs/message_tokens.h"

namespace memdecay {
namespace {

struct EvalFlags {
  EngineFlags engine;
  std::vector<std::string> runs;
  std::vector<std::string> policies = {"memdecay"};
  std::vector<std::string> kv_formats = {"auto"};
  std::vector<std::string> budgets = {"50%", "25%", "12.5%"};
  std::string out = "eval-out";
  int sessions = 20;
  int recall_sessions = 2;
  ChainOptions chain;
  SessionEvalOptions session;
  std::string split = "all";
  std::string eviction = "streaming";
  bool quick = false;
};

constexpr int kQuickSessions = 2;
constexpr int kQuickRecallSessions = 1;
constexpr int kQuickTokens = 3000;

/// "12:34 left" from the share done and the time taken; nothing while it cannot be known.
class Progress {
 public:
  void tell(const std::string& what, double share) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    if (seconds - told_ < 2.0 && share < 1) return;
    told_ = seconds;
    const int left = share > 0.01 ? static_cast<int>(std::lround(seconds / share - seconds)) : -1;
    const std::string rest = left < 0 ? "" : fmt::format(", {}:{:02} left", left / 60, left % 60);
    std::fprintf(stderr, "%s: %.0f %%%s\n", what.c_str(), 100 * share, rest.c_str());
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double told_ = -1e9;
};

Status write_report(const ResultsFile& results, const EvalFlags& flags) {
  const std::string path = flags.out + "/report.html";
  ReportHead head;
  head.note = "memdecay eval, model " + flags.engine.model();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << render_html_report(results.json(), head);
  file.close();
  if (file) return Status();
  return make_status(StatusCode::kIoError, "\"{}\" could not be written", path);
}

void print_rows(const ResultsFile& results) {
  std::printf("%-22s %-6s %-7s %-13s %9s %9s %8s %8s %6s\n", "policy", "format", "budget",
              "data set", "mean KL", "p99 KL", "flips/k", "value", "n");
  const auto value = [](const nlohmann::ordered_json& row, const char* name) {
    const auto& metric = row.at(name);
    return metric.at("value").is_number() ? metric.at("value").get<double>() : std::nan("");
  };
  for (const auto& row : results.json().at("rows")) {
    const ResultKey key = key_of_row(row);
    std::printf("%-22s %-6s %-7s %-13s %9.5f %9.4f %8.1f %8.4f %6lld\n", key.policy.c_str(),
                key.kv_format.c_str(), key.budget.c_str(), key.data_set.c_str(),
                value(row, "mean_kl"), value(row, "p99_kl"), value(row, "flips_per_1000"),
                value(row, "value_match"),
                static_cast<long long>(row.at("mean_kl").at("n").get<std::int64_t>()));
  }
}

Status eval(EvalFlags flags) {
  if (flags.quick) {
    flags.sessions = kQuickSessions;
    flags.recall_sessions = std::min(flags.recall_sessions, kQuickRecallSessions);
    flags.chain.min_tokens = kQuickTokens;
    flags.chain.max_tokens = kQuickTokens * 3 / 2;
  }
  flags.session.after_the_fact = flags.eviction == "after";
  flags.chain.split = flags.split == "development" ? Split::kDevelopment
                      : flags.split == "test"      ? Split::kTest
                                                   : Split::kAll;
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<MemoryCell> cells,
                            make_cells(flags.policies, flags.kv_formats, flags.budgets));
  MEMDECAY_ASSIGN_OR_RETURN(RunContents runs, read_runs(flags.runs));
  finish_runs(runs);
  for (const std::string& note : runs.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  MEMDECAY_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.options());
  options.adaptive_decay = false;
  options.pools_for_all_forms = true;
  options.share_prefixes = false;  // what a cell keeps must not depend on the cells before
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::create(options));
  MEMDECAY_ASSIGN_OR_RETURN(
      const Chains chains,
      chain_sessions(runs.trajectories, token_counter(engine->model()), flags.chain));
  for (const std::string& note : chains.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  std::error_code failure;
  std::filesystem::create_directories(flags.out, failure);
  if (failure) {
    return make_status(StatusCode::kIoError, "the folder \"{}\" cannot be made: {}", flags.out,
                       failure.message());
  }
  MEMDECAY_ASSIGN_OR_RETURN(ResultsFile results, ResultsFile::open(flags.out + "/results.json"));
  MEMDECAY_ASSIGN_OR_RETURN(ScoresFile scores, ScoresFile::open(flags.out + "/scores.jsonl"));
  std::map<std::string, std::vector<const ChainedSession*>> by_data_set;
  for (const ChainedSession& session : chains.sessions) {
    auto& sessions = by_data_set[session.data_set];
    const bool fits = session.tokens <= engine->context_tokens();
    if (!session.is_short && fits && static_cast<int>(sessions.size()) < flags.sessions)
      sessions.push_back(&session);
  }
  const auto has_sessions = [](const auto& entry) { return !entry.second.empty(); };
  if (std::none_of(by_data_set.begin(), by_data_set.end(), has_sessions)) {
    return make_status(StatusCode::kInvalidArgument,
                       "nothing can be measured: {} recorded runs in {} make no session of {} to "
                       "{} tokens that fits the context",
                       runs.trajectories.size(), fmt::join(flags.runs, ", "),
                       flags.chain.min_tokens, flags.chain.max_tokens);
  }
  for (const auto& [data_set, sessions] : by_data_set) {
    if (sessions.empty()) continue;
    Progress progress;
    const auto tell = [&, &name = data_set, all = sessions.size()](std::size_t number,
                                                                   double share) {
      progress.tell(fmt::format("{}, session {} of {}", name, number + 1, all),
                    (static_cast<double>(number) + share) / static_cast<double>(all));
    };
    const EvaluationTask task{flags.engine.model(), data_set, sessions, cells, flags.session,
                              flags.recall_sessions};
    MEMDECAY_RETURN_IF_ERROR(evaluate_data_set(*engine, task, {results, scores}, tell));
    MEMDECAY_RETURN_IF_ERROR(write_report(results, flags));
  }
  print_rows(results);
  return write_report(results, flags);
}

}  // namespace

void add_eval_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = program.add_subcommand(
      "eval", "measure on recorded agent runs what a policy's memory keeps, against a full cache");
  command->add_option("RUNS", flags->runs, "files or folders of recorded runs")->required();
  flags->engine.add_model_to(*command);
  command
      ->add_option("--policy", flags->policies,
                   "policies; NAME:SETTING=VALUE;... changes settings, +prefix at the end protects "
                   "it; oracle: one that knows what will be read")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->capture_default_str();
  command->add_option("--kv-format", flags->kv_formats, "forms of pages")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->capture_default_str();
  command
      ->add_option("--budget", flags->budgets,
                   "shares of the fp16 bytes of what is not protected, or bytes")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->capture_default_str();
  command->add_option("--out", flags->out, "folder of results.json and report.html")
      ->capture_default_str();
  command->add_option("--sessions", flags->sessions, "most sessions of a data set")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  command
      ->add_option("--recall-sessions", flags->recall_sessions,
                   "sessions of a data set that are played once more with facts planted in them, "
                   "and asked for each")
      ->check(whole_number(0, 10000))
      ->capture_default_str();
  command->add_option("--min-tokens", flags->chain.min_tokens, "shortest session")
      ->capture_default_str();
  command->add_option("--max-tokens", flags->chain.max_tokens, "longest session")
      ->capture_default_str();
  command->add_option("--split", flags->split, "tasks to take")
      ->check(CLI::IsMember({"all", "development", "test"}))
      ->capture_default_str();
  command
      ->add_option("--label-noise", flags->session.label_noise,
                   "share of region spans that are labelled wrong")
      ->check(number_between(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--eviction", flags->eviction,
                   "streaming: as it would happen; after: once, after three quarters of a session, "
                   "and the rest is scored")
      ->check(CLI::IsMember({"streaming", "after"}))
      ->capture_default_str();
  command->add_option("--seed", flags->session.seed, "of the noise and the policy random")
      ->capture_default_str();
  command->add_option("--cells-at-once", flags->session.cells_at_once, "memories in one pass")
      ->check(whole_number(1, 64))
      ->capture_default_str();
  command->add_flag("--quick", flags->quick, "two short sessions a data set");
  command->footer(
      "OUT/scores.jsonl keeps what each session scored: a run that was interrupted goes on where\n"
      "it was, and one that asks for more sessions, policies or budgets measures only those.\n\n"
      "Examples:\n"
      "  memdecay eval runs/ -m smollm2 --quick\n"
      "  memdecay eval runs/airline.json.gz --policy memdecay,window+prefix,lru+prefix --budget "
      "25%,12.5%\n"
      "  memdecay eval runs/ --policy none --kv-format int8,int4   # forms without eviction");
  command->callback([flags, &status] { status = report(eval(*flags)); });
}

}  // namespace memdecay
