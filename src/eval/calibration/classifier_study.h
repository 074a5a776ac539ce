// Classifier study: trains the region classifier for a model on recorded runs, and measures it
// against the rules on tasks that it has not seen.
//
// Runs are divided by task within their data set: a fifth is measured on, a tenth decides when to
// stop, the rest is learnt. A data set that is left out is only measured on; with it, nothing else
// is. Labels that are learnt from (and those that decide when to stop) may carry noise: spans are
// relabelled at random (label_noise.h). What is measured on stays clean.
// Rows of the result: the classifier; the rules without chat structure; the rules with it, their
// labels noised by 0, 10 and 30 %; and always the commonest region. Deterministic by seed. One
// thread. Cost: minutes for a million tokens; memory for the embeddings of all distinct tokens.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "engine/model.h"
#include "eval/runs/flat_transcript.h"
#include "eval/runs/trajectory.h"
#include "policy/classifier/classifier_training.h"
#include "policy/classifier/region_classifier_file.h"

namespace memdecay {

struct StudyOptions {
  TrainingOptions training;  ///< embedding_width is the model's, whatever stands there
  double noise = 0;          ///< of the labels that are learnt from
  std::string leave_out;     ///< a data set; empty for none
  std::size_t max_text_bytes = 160'000;
  std::uint64_t seed = 1;
};

/// One judge on one part of what is measured on.
struct StudyRow {
  std::string method;
  std::string data_set;  ///< "all" for all
  std::string style;     ///< "all" for all
  RegionConfusion confusion;
};

struct ClassifierStudy {
  ClassifierFile file;  ///< as it reads after having been written: rounded to int8
  std::vector<EpochReport> epochs = {};
  int best_epoch = 0;
  std::size_t training_tokens = 0, held_out_tokens = 0, test_tokens = 0;
  std::size_t training_tasks = 0, held_out_tasks = 0, test_tasks = 0;
  std::vector<StudyRow> rows = {};
};

/// kInvalidArgument for too few tasks or an unknown data set to leave out; else what labelling or
/// training says.
Result<ClassifierStudy> study_classifier(
    const Model& model, std::span<const Trajectory> runs, const StudyOptions& options,
    const std::function<void(const EpochReport&)>& on_epoch = {});

/// {"training": {...}, "epochs": [...], "rows": [{"method", "data_set", "style", "tokens",
/// "accuracy", "macro_f1", "f1": {region: ...}}]}
nlohmann::ordered_json study_json(const ClassifierStudy& study);

}  // namespace memdecay
