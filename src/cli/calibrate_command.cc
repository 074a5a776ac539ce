#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/exit_status.h"
#include "cli/flag_checks.h"
#include "cli/runs_flags.h"
#include "cli/standard_output.h"
#include "engine/model_catalogue.h"
#include "eval/calibration/classifier_study.h"
#include "sys/thread_team.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

struct ClassifierFlags {
  std::string model;
  RunsFlags runs;
  std::string out;
  StudyOptions study;
  bool json = false;
};

void print_study(const ClassifierStudy& study) {
  std::printf("learnt from %zu tasks (%zu tokens), measured on %zu others (%zu tokens)\n\n",
              study.training_tasks, study.training_tokens, study.test_tasks, study.test_tokens);
  std::printf("%-36s %-14s %-9s %9s %9s", "judge", "data set", "style", "accuracy", "macro F1");
  for (const std::string_view name : kRegionNames) std::printf(" %9s", name.data());
  std::printf("\n");
  for (const StudyRow& row : study.rows) {
    std::printf("%-36s %-14s %-9s %9.3f %9.3f", row.method.c_str(), row.data_set.c_str(),
                row.style.c_str(), row.confusion.accuracy(), row.confusion.macro_f1());
    for (const Region region : kRegions) {
      const std::optional<double> f1 = row.confusion.f1(region);
      f1.has_value() ? std::printf(" %9.3f", *f1) : std::printf(" %9s", "-");
    }
    std::printf("\n");
  }
}

void show_epoch(const EpochReport& epoch) {
  std::fprintf(stderr, "epoch %2d: loss %.4f, held out: macro F1 %.3f, accuracy %.3f\n",
               epoch.epoch, epoch.loss, epoch.held_out_f1, epoch.held_out_accuracy);
}

Status calibrate_classifier(const ClassifierFlags& flags) {
  MEMDECAY_ASSIGN_OR_RETURN(const RunContents runs, flags.runs.read());
  MEMDECAY_ASSIGN_OR_RETURN(const std::string path, resolve_model(flags.model));
  ThreadTeam team(1);
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                            Model::load(path, Precision::kFast, team));
  MEMDECAY_ASSIGN_OR_RETURN(const ClassifierStudy study,
                            study_classifier(*model, runs.trajectories, flags.study, show_epoch));
  if (!flags.out.empty()) {
    const std::string bytes = serialize_classifier(study.file);
    MEMDECAY_RETURN_IF_ERROR(replace_file(flags.out, bytes));
    std::fprintf(stderr, "wrote %s, %zu bytes\n", flags.out.c_str(), bytes.size());
  }
  flags.json ? print_json(study_json(study)) : print_study(study);
  return Status();
}

void add_classifier(CLI::App& calibrate, int& status) {
  const auto flags = std::make_shared<ClassifierFlags>();
  CLI::App* command = calibrate.add_subcommand(
      "classifier", "train the classifier that finds regions in prompts without chat structure");
  TrainingOptions& training = flags->study.training;
  command->add_option("-m,--model", flags->model, "the model whose embeddings it reads")
      ->required();
  flags->runs.add_to(*command);
  command->add_option("--out", flags->out, "write the classifier to this file");
  command
      ->add_option("--noise", flags->study.noise,
                   "share of the spans whose label is made wrong before training")
      ->check(finite_number())
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--epochs", training.epochs, "passes over the runs at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--seed", flags->study.seed, "for the division of tasks and all draws")
      ->capture_default_str();
  command->add_option("--leave-out", flags->study.leave_out,
                      "learn nothing from this data set and measure on it alone");
  command->add_option("--hidden", training.shape.hidden_width, "width of the hidden layer")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--projected", training.shape.projected_width, "width of the projection")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--wide", training.shape.wide_tokens, "tokens of the wider neighbourhood")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--smooth", training.shape.smooth_tokens, "tokens to each side that vote")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(
      "Labels are those of the region rules, which see the chat structure; the classifier sees "
      "only tokens. Tasks are divided: what is measured on was not learnt from.\n\n"
      "Examples:\n"
      "  memdecay calibrate classifier -m smollm2 runs/ --out smollm2.bin\n"
      "  memdecay calibrate classifier -m smollm2 runs/ --noise 0.3 --json");
  command->callback([flags, &status] { status = report(calibrate_classifier(*flags)); });
}

}  // namespace

void add_calibrate_command(CLI::App& program, int& status) {
  CLI::App* calibrate =
      program.add_subcommand("calibrate", "fit what the memory knows to recorded runs");
  calibrate->require_subcommand(1);
  add_classifier(*calibrate, status);
  add_calibrate_decay_command(*calibrate, status);
}

}  // namespace memdecay
