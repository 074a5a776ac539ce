#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/engine_flags.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/runs_flags.h"
#include "cli/standard_error.h"
#include "cli/standard_output.h"
#include "eval/calibration/decay_calibration.h"
#include "eval/calibration/decay_study.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

struct DecayFlags {
  EngineFlags engine;
  RunsFlags runs;
  std::string out = "decay-out";
  DecayStudyOptions study;
  CalibrationOptions calibration;
  bool json = false;
};

using Regions = std::array<RegionCalibration, kRegionCount>;

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

Result<std::vector<UseRecord>> record_all(Engine& engine,
                                          const std::vector<ChainedSession>& sessions,
                                          const DecayStudyOptions& options) {
  Progress progress;
  std::vector<UseRecord> records;
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const std::string what = fmt::format("session {} of {}", i + 1, sessions.size());
    const auto tell = [&](double part) {
      progress.tell(what, (static_cast<double>(i) + part) / static_cast<double>(sessions.size()));
    };
    MEMDECAY_ASSIGN_OR_RETURN(const std::vector<UseRecord> more,
                              record_uses(engine, sessions[i], options, tell));
    records.insert(records.end(), more.begin(), more.end());
  }
  return records;
}

Status calibrate_decay_command(const DecayFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const RunContents runs, flags.runs.read());
  MEMDECAY_ASSIGN_OR_RETURN(EngineOptions options, flags.engine.options());
  options.adaptive_decay = false;
  MEMDECAY_ASSIGN_OR_RETURN(const auto engine, Engine::create(options));
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<ChainedSession> sessions,
                            flags.runs.sessions_of(runs, *engine, /*plants_facts=*/false));
  MEMDECAY_RETURN_IF_ERROR(make_folder(flags.out));
  MEMDECAY_ASSIGN_OR_RETURN(const auto records, record_all(*engine, sessions, flags.study));
  const Regions regions = calibrate_decay(records, flags.calibration);
  nlohmann::ordered_json json = calibration_json(regions, flags.calibration);
  json["looks_above"] = flags.study.looks_above;
  json["measured_on"] = {{"model", flags.engine.model()}, {"sessions", sessions.size()}};
  MEMDECAY_RETURN_IF_ERROR(replace_file(flags.out + "/decay.json", json.dump(2) + "\n"));
  MEMDECAY_RETURN_IF_ERROR(replace_file(flags.out + "/survival.svg", calibration_svg(regions)));
  flags.json ? print_json(json) : print_regions(regions, flags.calibration);
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
  flags->runs.add_to(*command);
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
  flags->runs.add_sessions_to(*command, 4);
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
