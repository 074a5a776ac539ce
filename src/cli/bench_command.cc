#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/bench_row.h"
#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/memory_report.h"
#include "cli/peer_engine.h"
#include "cli/standard_output.h"
#include "core/units.h"
#include "eval/speed/bandwidth_probe.h"
#include "eval/speed/speed.h"
#include "sys/cpu.h"
#include "sys/memory.h"

namespace memdecay {
namespace {

struct BenchFlags {
  EngineFlags engine;
  std::vector<int> threads;
  std::vector<int> prompts = {512};
  std::vector<int> generations = {128};
  std::vector<int> depths = {0};
  int repetitions = 5;
  std::string output = "table";
  std::string peer;
  std::uint64_t probe_mib = 1024;
};

std::vector<SpeedCase> cases_of(const BenchFlags& flags) {
  std::vector<SpeedCase> cases;
  for (const int depth : flags.depths) {
    for (const int prompt : flags.prompts) {
      if (prompt > 0) cases.push_back({prompt, 0, depth});
    }
    for (const int generation : flags.generations) {
      if (generation > 0) cases.push_back({0, generation, depth});
    }
  }
  return cases;
}

/// Ours and the peer's repetitions in turn.
Result<BenchRow> run_case(Engine& engine, const SpeedCase& speed_case, const BenchFlags& flags,
                          const BandwidthProbe& probe) {
  BenchRow row;
  row.speed_case = speed_case;
  row.threads = engine.threads();
  std::optional<PeerEngine> peer;
  if (!flags.peer.empty()) peer.emplace(flags.peer, engine.model().path());
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<SpeedRun> run,
                            SpeedRun::prepare(engine, speed_case));
  row.bytes_moved = run->bytes_moved();
  ThreadTeam team(engine.threads());
  for (int repetition = 0; repetition < flags.repetitions; ++repetition) {
    row.bandwidth = std::max(row.bandwidth, probe.measure(team, 2));
    MEMDECAY_ASSIGN_OR_RETURN(const std::int64_t ns, run->repeat());
    row.samples_ns.push_back(ns);
    if (!peer) continue;
    MEMDECAY_ASSIGN_OR_RETURN(const double speed, peer->repeat(speed_case, engine.threads()));
    row.peer_tokens_per_second.push_back(speed);
  }
  return row;
}

Status bench(const BenchFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.options());
  options.share_prefixes = false;  // every row pays for its own tokens
  const std::vector<SpeedCase> cases = cases_of(flags);
  if (flags.probe_mib * kMiB > physical_memory_bytes() / 2) {
    return make_status(StatusCode::kInvalidArgument,
                       "a probe of {} does not fit this machine's memory of {} beside a model",
                       format_bytes(flags.probe_mib * kMiB), format_bytes(physical_memory_bytes()));
  }
  std::optional<BandwidthProbe> probe;  // made after an engine: a bad model is told at once
  // Rows as deep as asked for, also beyond the trained context: speed does not care.
  for (const SpeedCase& speed_case : cases) {
    options.context_tokens =
        std::max(options.context_tokens, speed_case.n_depth + speed_case.tokens());
  }
  std::vector<BenchRow> rows;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::string model;
  for (const int threads :
       flags.threads.empty() ? std::vector<int>{usable_cores()} : flags.threads) {
    options.threads = threads;
    MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, Engine::create(options));
    model = engine->model().config().name;
    if (!probe) {
      MEMDECAY_ASSIGN_OR_RETURN(probe,
                                BandwidthProbe::create(flags.probe_mib * kMiB, engine->kernels()));
    }
    for (const SpeedCase& speed_case : cases) {
      MEMDECAY_ASSIGN_OR_RETURN(BenchRow row, run_case(*engine, speed_case, flags, *probe));
      json.push_back(bench_row_json(row, *engine));
      std::fprintf(stderr, "%s, %s: done\n", row.name().c_str(), describe_threads(*engine).c_str());
      rows.push_back(std::move(row));
    }
  }
  flags.output == "json" ? print_json(json, 2) : print_bench_table(rows, model);
  return Status();
}

}  // namespace

void add_bench_command(CLI::App& program, int& status) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App* command =
      program.add_subcommand("bench",
                             "tokens a second of prompts and decoding, with llama-bench's flags "
                             "and rows; bytes moved and bandwidth share");
  flags->engine.add_to(*command);
  command->remove_option(command->get_option("-t"));
  command
      ->add_option("-t,--threads", flags->threads,
                   "threads, one run each; not set: the cores this process may use")
      ->delimiter(',')
      ->check(whole_number(1, 1024));
  command->add_option("-p,--n-prompt", flags->prompts, "prompt lengths; 0: none")
      ->check(token_count())
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-n,--n-gen", flags->generations, "tokens to decode; 0: none")
      ->check(token_count())
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-d,--n-depth", flags->depths, "tokens already in the cache")
      ->check(token_count())
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-r,--repetitions", flags->repetitions, "timed repetitions")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->add_option("--against", flags->peer,
                      "a llama-bench program: its runs alternate with ours, and the medians of the "
                      "pairs' ratios are shown");
  command
      ->add_option("--probe-mib", flags->probe_mib, "size of the memory-bandwidth probe's buffer")
      ->check(whole_number(1, 1 << 20))
      ->capture_default_str();
  command->footer(
      "Rows are llama-bench's: pp512 is a prompt, tg128 decoding, @ d4096 after that many tokens. "
      "The bandwidth column is\nthe share of what this machine's threads can read.\n\n"
      "Examples:\n"
      "  memdecay bench -m smollm2 -t 1,2 -p 512 -n 128 -d 0,4096\n"
      "  memdecay bench -m qwen-0.5b -n 32 -r 3 -o json\n"
      "  memdecay bench -m smollm2 --against ./llama-bench");
  command->callback([flags, &status] {
    if (cases_of(*flags).empty())
      throw CLI::ValidationError("nothing to measure: -p and -n are all 0");
    status = report(bench(*flags));
  });
}

}  // namespace memdecay
