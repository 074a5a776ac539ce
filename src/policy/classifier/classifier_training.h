// Training of the region classifier: labelled texts in, a RegionClassifier out.
//
// Mini-batches of chunks, Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and
// Hutter 2019), cross entropy with weights (tokens / tokens of the region)^power so that rare
// regions count, a rate that falls evenly to nothing, and the weights of the best epoch by macro F1
// on texts that are held out (training stops `patience` epochs after it). The caller divides texts
// by task, never by episode: what is held out here must repeat nothing.
// Deterministic: same texts, options and seed give the same weights on one build. Pure, one thread.
// Cost: about 4 * (embedding_width * projected_width + inputs * hidden_width) products a token and
// epoch; memory for the table of embeddings that the caller brings.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/status.h"
#include "policy/classifier/region_classifier.h"
#include "policy/regions/region_confusion.h"

namespace memdecay {

struct LabelledText {
  std::vector<std::int32_t> rows;    ///< [tokens]: into the table of embeddings
  std::vector<std::int32_t> places;  ///< [tokens]
  std::vector<Region> labels;        ///< [tokens]
  ClassifierText view() const { return {rows, places}; }
};

struct TrainingTexts {
  std::span<const float> embeddings;  ///< [rows][shape.embedding_width]
  std::span<const LabelledText> training;
  std::span<const LabelledText> held_out;
};

struct TrainingOptions {
  ClassifierShape shape;
  int epochs = 20;
  int patience = 6;
  double learning_rate = 3e-3;
  double weight_decay = 1e-2;
  double class_weight_power = 0.5;
  int chunk_tokens = 64;
  int batch_chunks = 16;
  /// Chunks that one text gives an epoch at most, drawn anew each time: long runs do not drown
  /// short ones.
  int chunks_per_text = 24;
  std::uint64_t seed = 1;
};

struct EpochReport {
  int epoch = 0;
  double loss = 0;         ///< mean weighted cross entropy of the epoch's batches
  double held_out_f1 = 0;  ///< macro
  double held_out_accuracy = 0;
};

struct TrainedClassifier {
  RegionClassifier classifier;
  std::vector<EpochReport> epochs;
  int best_epoch = 0;
};

/// kInvalidArgument for texts that contradict themselves, nothing to learn from, or nothing held
/// out. `on_epoch` may be empty.
Result<TrainedClassifier> train_classifier(
    const TrainingTexts& texts, const TrainingOptions& options,
    const std::function<void(const EpochReport&)>& on_epoch = {});

/// What the classifier says of texts against their labels.
RegionConfusion measure_classifier(const RegionClassifier& classifier,
                                   std::span<const float> embeddings,
                                   std::span<const LabelledText> texts);

/// All rows of a table of embeddings, projected.
std::vector<float> project_rows(const RegionClassifier& classifier,
                                std::span<const float> embeddings);

}  // namespace memdecay
