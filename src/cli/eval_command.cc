#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/runs_flags.h"
#include "cli/standard_error.h"
#include "eval/cells/evaluation.h"
#include "eval/report/html_report.h"
#include "eval/report/results_file.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

struct EvalFlags {
  EngineFlags engine;
  RunsFlags runs;
  std::vector<std::string> policies = {"memdecay"};
  std::vector<std::string> kv_formats = {"auto"};
  std::vector<std::string> budgets = {"50%", "25%", "12.5%"};
  std::string out = "eval-out";
  int recall_sessions = 2;
  SessionEvalOptions session;
  std::string split = "all";
  std::vector<double> label_noise = {0};
  std::vector<std::string> eviction = {"streaming"};
  bool quick = false;
};

constexpr int kQuickSessions = 2;
constexpr int kQuickRecallSessions = 1;
constexpr int kQuickTokens = 1500;
constexpr const char* kQuickModel = "smollm2";

/// How far all tasks are, by what they had to measure when they began.
class EvalProgress {
 public:
  EvalProgress(std::span<const EvaluationTask> tasks, const ScoresFile& scores) {
    for (const EvaluationTask& task : tasks) {
      missing_[&task] = missing_tokens(task, scores);
      all_ += sum(missing_[&task], missing_[&task].size());
    }
  }
  void tell(const EvaluationTask& task, std::size_t session, double share) {
    const std::vector<double>& missing = missing_.at(&task);
    const double done = finished_ + sum(missing, session) + share * missing[session];
    progress_.tell(fmt::format("{}, session {} of {}", task.data_set, session + 1, missing.size()),
                   all_ > 0 ? done / all_ : 1.0);
  }
  void finish(const EvaluationTask& task) {
    finished_ += sum(missing_.at(&task), missing_.at(&task).size());
  }

 private:
  static double sum(const std::vector<double>& tokens, std::size_t count) {
    return std::accumulate(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count),
                           0.0);
  }
  Progress progress_;
  std::map<const EvaluationTask*, std::vector<double>> missing_;  // [sessions]
  double all_ = 0;
  double finished_ = 0;
};

Status write_report(const ResultsFile& results, const EvalFlags& flags) {
  ReportHead head;
  head.note = "memdecay eval, model " + flags.engine.model();
  return replace_file(flags.out + "/report.html", render_html_report(results.json(), head));
}

void print_rows(const ResultsFile& results) {
  std::printf("%-22s %-6s %-7s %-13s %9s %9s %8s %8s %6s\n", "policy", "format", "budget",
              "data set", "mean KL", "p99 KL", "flips/k", "value", "n");
  const auto value = [](const nlohmann::ordered_json& row, const char* name) {
    const auto& metric = row.at(name);
    return metric.at("value").is_number() ? metric.at("value").get<double>()
                                          : std::numeric_limits<double>::quiet_NaN();
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

/// How sessions are played: each way of evicting with each share of wrong labels, each once.
std::vector<SessionEvalOptions> ways_to_play(const EvalFlags& flags) {
  std::vector<SessionEvalOptions> ways;
  const std::set<std::string> evictions(flags.eviction.begin(), flags.eviction.end());
  const std::set<double> noises(flags.label_noise.begin(), flags.label_noise.end());
  for (const std::string& eviction : evictions) {
    for (const double noise : noises) {
      SessionEvalOptions& way = ways.emplace_back(flags.session);
      way.after_the_fact = eviction == "after";
      way.label_noise = noise;
    }
  }
  return ways;
}

Status eval(EvalFlags flags) {
  flags.runs.chain.split = flags.split == "development" ? Split::kDevelopment
                           : flags.split == "test"      ? Split::kTest
                                                        : Split::kAll;
  MEMDECAY_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.options());
  MEMDECAY_ASSIGN_OR_RETURN(
      const std::vector<MemoryCell> cells,
      make_cells(flags.policies, flags.kv_formats, flags.budgets, options.policy_config));
  MEMDECAY_ASSIGN_OR_RETURN(ResultsFile results, ResultsFile::open(flags.out + "/results.json"));
  MEMDECAY_ASSIGN_OR_RETURN(ScoresFile scores, ScoresFile::open(flags.out + "/scores.jsonl"));
  MEMDECAY_ASSIGN_OR_RETURN(const RunContents runs, flags.runs.read());
  options.adaptive_decay = false;
  options.pools_for_all_forms = true;
  options.share_prefixes = false;  // what a cell keeps must not depend on the cells before
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::create(options));
  const std::vector<SessionEvalOptions> ways = ways_to_play(flags);
  const bool streams = std::any_of(
      ways.begin(), ways.end(), [](const SessionEvalOptions& way) { return !way.after_the_fact; });
  const bool plants_facts = flags.recall_sessions > 0 && streams;
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<ChainedSession> sessions,
                            flags.runs.sessions_of(runs, *engine, plants_facts));
  MEMDECAY_RETURN_IF_ERROR(make_folder(flags.out));
  std::map<std::string, std::vector<const ChainedSession*>> by_data_set;
  for (const ChainedSession& session : sessions) by_data_set[session.data_set].push_back(&session);
  std::vector<EvaluationTask> tasks;
  for (const auto& [data_set, chosen] : by_data_set)
    for (const SessionEvalOptions& way : ways)
      tasks.push_back({flags.engine.model(), data_set, chosen, cells, way, flags.recall_sessions});
  EvalProgress progress(tasks, scores);
  for (const EvaluationTask& task : tasks) {
    const auto tell = [&](std::size_t session, double share) {
      progress.tell(task, session, share);
    };
    MEMDECAY_RETURN_IF_ERROR(
        evaluate_data_set(*engine, task, {results, scores}, {tell, print_note}));
    progress.finish(task);
    MEMDECAY_RETURN_IF_ERROR(write_report(results, flags));
  }
  print_rows(results);
  MEMDECAY_RETURN_IF_ERROR(write_report(results, flags));
  if (results.rows() > 0) return Status();
  return Status(StatusCode::kResourceExhausted, "no cell could be scored: the notes say why");
}

/// What --quick says where other flags do not.
void use_quick_defaults(const CLI::App& command, EvalFlags& flags) {
  flags.runs.use_defaults(kQuickSessions, kQuickTokens, kQuickTokens * 3 / 2);
  if (command.count("--recall-sessions") == 0) flags.recall_sessions = kQuickRecallSessions;
  if (command.count("--model") == 0) flags.engine.use_model(kQuickModel);
}

/// Words between commas; the next word of the command line is another's (RUNS may stand there).
void comma_list(CLI::Option* option) {
  option->delimiter(',')
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->capture_default_str();
}

}  // namespace

void add_eval_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = program.add_subcommand(
      "eval", "measure on recorded agent runs what a policy's memory keeps, against a full cache");
  flags->runs.add_to(*command);
  flags->engine.add_model_to(*command);
  comma_list(command->add_option(
      "--policy", flags->policies,
      "policies; NAME:SETTING=VALUE;... changes settings, +prefix protects it; oracle: knows what "
      "will be read; all: every one, and each but memdecay with +prefix too"));
  flags->engine.add_policy_config_to(*command);
  comma_list(command->add_option("--kv-format", flags->kv_formats, "forms of pages"));
  comma_list(command->add_option("--budget", flags->budgets,
                                 "shares of the fp16 bytes of what is not protected, or bytes"));
  command->add_option("--out", flags->out, "folder of results.json, scores.jsonl and report.html")
      ->capture_default_str();
  flags->runs.add_sessions_to(*command, 20);
  command
      ->add_option("--recall-sessions", flags->recall_sessions,
                   "sessions of a data set that are played once more with facts planted in them, "
                   "and asked for each; none with --eviction after")
      ->check(whole_number(0, 10000))
      ->capture_default_str();
  command->add_option("--split", flags->split, "tasks to take")
      ->check(CLI::IsMember({"all", "development", "test"}))
      ->capture_default_str();
  comma_list(command
                 ->add_option("--label-noise", flags->label_noise,
                              "shares of region spans that are labelled wrong")
                 ->check(number_between(0.0, 1.0)));
  comma_list(command
                 ->add_option("--eviction", flags->eviction,
                              "streaming: as it would happen; after: once, after three quarters of "
                              "a session, and the rest is scored")
                 ->check(CLI::IsMember({"streaming", "after"})));
  command->add_option("--seed", flags->session.seed, "of the noise and the policy random")
      ->capture_default_str();
  command->add_option("--cells-at-once", flags->session.cells_at_once, "memories in one pass")
      ->check(whole_number(1, 64))
      ->capture_default_str();
  command->add_flag("--quick", flags->quick,
                    "two sessions a data set of 1,500 tokens and more, smollm2, unless other flags "
                    "say otherwise: a few minutes");
  command->footer(
      "OUT/scores.jsonl keeps what each session scored: a run that was interrupted goes on where\n"
      "it was, and one that asks for more sessions, policies or budgets measures only those. A\n"
      "session that is to be asked for facts is measured as a whole.\n\n"
      "Examples:\n"
      "  memdecay eval runs/ --quick\n"
      "  memdecay eval runs/airline.json.gz --policy memdecay,window+prefix,lru+prefix --budget "
      "25%,12.5%\n"
      "  memdecay eval runs/ --label-noise 0,0.1,0.3 --recall-sessions 0\n"
      "  memdecay eval runs/ --policy none --kv-format int8,int4   # forms without eviction");
  command->callback([flags, command, &status] {
    if (flags->quick) use_quick_defaults(*command, *flags);
    status = report(eval(*flags));
  });
}

}  // namespace memdecay
