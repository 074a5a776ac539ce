// A model file with its weights and a transformer over them, for tests and benchmarks that need no
// engine; never in the product.
#pragma once

#include <memory>
#include <utility>

#include "model/transformer/transformer.h"

namespace memdecay {

struct LoadedModel {
  LoadedModel(GgufFile opened, Precision precision, int page_tokens, int threads,
              const Transformer::Options& options, const KernelTable& kernels = best_kernels())
      : file(std::move(opened)), config(ModelConfig::read(file).value()), team(threads) {
    const ModelTensors tensors = ModelTensors::find(file, config).value();
    weights = load_weights(file, config, tensors, precision, team).value();
    const bool exact = precision == Precision::kExact;
    groups = make_layer_groups(config, page_tokens, exact ? KvFormat::kF32 : KvFormat::kF16);
    transformer = Transformer::create(config, *weights, groups, kernels, team, options).value();
  }
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  GgufFile file;
  ModelConfig config;
  ThreadTeam team;
  std::unique_ptr<ModelWeights> weights;
  LayerGroups groups;
  std::unique_ptr<Transformer> transformer;
};

}  // namespace memdecay
