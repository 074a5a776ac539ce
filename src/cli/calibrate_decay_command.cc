#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "eval/decay_study.h"
#include "eval/readers/read_runs.h"
#include "eval/runs/chained_session.h"
#include "eval/runs/message_tokens.h"

namespace memdecay {
namespace {

struct DecayFlags {
  EngineFlags engine;
  std::vector<std::string> runs;
  std::string out = "decay-out";
  int sessions = 4;
  ChainOptions chain;
  DecayStudyOptions study;
  CalibrationOptions calibration;
  bool json = false;
};

using Regions = std::array<RegionCalibration, kRegionCount>;

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (stream) return Status();
  return make_status(StatusCode::kIoError, "cannot write \"{}\": {}", path, std::strerror(errno));
}

std::string steps_text(double steps) {
  return std::isinf(steps) ? "never" : fmt::format("{:.0f}", steps);
}

void print_regions(const Regions& regions, const CalibrationOptions& options) {
  const auto defaults = default_region_decay();
  std::printf("%-9s %7s %7s %11s %11s %11s %-15s %12s %7s\n", "region", "pages", "ended",
              "half after", "survival", "decay", "best fit", "default's", "in use");
  for (const RegionCalibration& region : regions) {
    const std::size_t r = region_index(region.region);
    const double default_steps =
        survival_for_decay(kInitialScores[r], defaults[r], options.threshold);
    std::printf(
        "%-9s %7lld %7lld %11s %11s %11.6f %-15s %12s %6.1f%%\n",
        std::string(region_name(region.region)).c_str(), static_cast<long long>(region.curve.items),
        static_cast<long long>(region.curve.ended), steps_text(region.curve.steps_at(0.5)).c_str(),
        steps_text(region.survival_steps).c_str(), region.decay,
        region.fits.empty() ? "-" : survival_shape_name(region.fits.front().shape),
        steps_text(default_steps).c_str(),
        100 * share_in_use(region, defaults[r], options.threshold));
  }
  std::printf(
      "\nsurvival: tokens after which a score falls to %g, since %g %% are still in use then;\n"
      "decay = ln(initial / %g) / survival; default's: the survival that the built-in decay "
      "gives,\n"
      "and what share of the region's pages is still in use after it\n",
      options.threshold, 100 * options.wished_share, options.threshold);
}

/// The first sessions of each data set that fit the engine.
std::vector<const ChainedSession*> pick_sessions(const Chains& chains, const Engine& engine,
                                                 int most) {
  std::map<std::string, int> taken;
  std::vector<const ChainedSession*> sessions;
  for (const ChainedSession& session : chains.sessions) {
    const bool fits = session.tokens <= engine.context_tokens();
    if (!session.is_short && fits && taken[session.data_set]++ < most) sessions.push_back(&session);
  }
  return sessions;
}

Result<std::vector<UseRecord>> record_all(Engine& engine,
                                          const std::vector<const ChainedSession*>& sessions,
                                          const DecayStudyOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  double told = -1e9;
  std::vector<UseRecord> records;
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const auto tell = [&](double part) {
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const double share = (static_cast<double>(i) + part) / static_cast<double>(sessions.size());
      if (seconds - told < 2.0 && share < 1) return;
      told = seconds;
      const int left = static_cast<int>(std::lround(seconds / share - seconds));
      std::fprintf(stderr, "session %zu of %zu: %.0f %%, %d:%02d left\n", i + 1, sessions.size(),
                   100 * share, left / 60, left % 60);
    };
    MEMDECAY_ASSIGN_OR_RETURN(const std::vector<UseRecord> more,
                              record_uses(engine, *sessions[i], options, tell));
    records.insert(records.end(), more.begin(), more.end());
  }
  return records;
}

Status calibrate_decay_command(const DecayFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(RunContents runs, read_runs(flags.runs));
  finish_runs(runs);
  for (const std::string& note : runs.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  MEMDECAY_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.options());
  options.adaptive_decay = false;
  MEMDECAY_ASSIGN_OR_RETURN(const auto engine, Engine::create(options));
  MEMDECAY_ASSIGN_OR_RETURN(
      const Chains chains,
      chain_sessions(runs.trajectories, token_counter(engine->model()), flags.chain));
  for (const std::string& note : chains.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  const auto sessions = pick_sessions(chains, *engine, flags.sessions);
  if (sessions.empty()) {
    return make_status(StatusCode::kInvalidArgument,
                       "the runs make no session of {} to {} tokens; --min-tokens asks for less",
                       flags.chain.min_tokens, flags.chain.max_tokens);
  }
  std::error_code failure;
  std::filesystem::create_directories(flags.out, failure);
  if (failure) {
    return make_status(StatusCode::kIoError, "the folder \"{}\" cannot be made: {}", flags.out,
                       failure.message());
  }
  MEMDECAY_ASSIGN_OR_RETURN(const auto records, record_all(*engine, sessions, flags.study));
  const Regions regions = calibrate_decay(records, flags.calibration);
  nlohmann::ordered_json json = calibration_json(regions, flags.calibration);
  json["looks_above"] = flags.study.looks_above;
  json["measured_on"] = {{"model", flags.engine.model()}, {"sessions", sessions.size()}};
  MEMDECAY_RETURN_IF_ERROR(write_file(flags.out + "/decay.json", json.dump(2) + "\n"));
  MEMDECAY_RETURN_IF_ERROR(write_file(flags.out + "/survival.svg", calibration_svg(regions)));
  flags.json ? static_cast<void>(std::printf("%s\n", json.dump().c_str()))
             : print_regions(regions, flags.calibration);
  std::fprintf(stderr, "wrote %s/decay.json and %s/survival.svg\n", flags.out.c_str(),
               flags.out.c_str());
  return Status();
}

}  // namespace

void add_calibrate_decay_command(CLI::App& calibrate, int& status) {
  const auto flags = std::make_shared<DecayFlags>();
  CLI::App* command = calibrate.add_subcommand(
      "decay",
      "measure how long each region of recorded runs stays in use, and how fast its "
      "score should fall");
  flags->engine.add_model_to(*command);
  command->add_option("RUNS", flags->runs, "files or folders of recorded runs")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--out", flags->out, "folder of decay.json and survival.svg")
      ->capture_default_str();
  command
      ->add_option("--wished-share", flags->calibration.wished_share,
                   "a region's score meets the threshold when this share of it is still in use")
      ->check(number_between(0.001, 0.999))
      ->capture_default_str();
  command
      ->add_option("--threshold", flags->calibration.threshold,
                   "the score at which something counts as forgotten; regions begin at 1 to 100")
      ->check(number_between(1e-6, 0.999))
      ->capture_default_str();
  command
      ->add_option("--quiet", flags->calibration.quiet_steps,
                   "tokens without a look after which a page's life is over; what was looked at "
                   "later may be looked at again")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--looks-above", flags->study.looks_above,
                   "a look: more attention than so many times the even share of the page's tokens")
      ->check(number_between(0.0, 1000.0))
      ->capture_default_str();
  command->add_option("--sessions", flags->sessions, "most sessions of a data set")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  command->add_option("--min-tokens", flags->chain.min_tokens, "shortest session")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--max-tokens", flags->chain.max_tokens, "longest session")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print decay.json instead of the table");
  command->footer(
      "The runs are played through a memory that forgets nothing. A page is in use while later\n"
      "steps of the assistant look at it. Per region that gives a survival curve (survival.svg,\n"
      "with the best of an exponential, a power law and two exponentials) and the decay factor\n"
      "    decay = ln(initial / threshold) / survival steps        (steps are tokens)\n"
      "OUT/decay.json can be edited, and given to chat, run, play and others:\n"
      "a region says either its decay or its survival_steps.\n\n"
      "Examples:\n"
      "  memdecay calibrate decay runs/ -m smollm2 --out calibrated\n"
      "  memdecay calibrate decay runs/ -m smollm2 --wished-share 0.2 --sessions 8\n"
      "  memdecay chat -m smollm2 --kv-budget 32MiB --policy-config calibrated/decay.json");
  command->callback([flags, &status] { status = report(calibrate_decay_command(*flags)); });
}

}  // namespace memdecay
