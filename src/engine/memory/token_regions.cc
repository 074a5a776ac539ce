#include "engine/memory/token_regions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/memory/token_embeddings.h"
#include "policy/classifier/classifier_training.h"

namespace memdecay {

extern const char kSmollm2Classifier[];
extern const std::size_t kSmollm2Classifier_bytes;
extern const char kQwen05bClassifier[];
extern const std::size_t kQwen05bClassifier_bytes;

namespace {

const std::vector<ClassifierFile>& built_in_classifiers() {
  static const std::vector<ClassifierFile> files = [] {
    std::vector<ClassifierFile> parsed;
    for (const std::string_view bytes :
         {std::string_view(kSmollm2Classifier, kSmollm2Classifier_bytes),
          std::string_view(kQwen05bClassifier, kQwen05bClassifier_bytes)}) {
      Result<ClassifierFile> file = parse_classifier(bytes);
      if (file.ok()) parsed.push_back(std::move(file).value());  // a test reads each of them
    }
    return parsed;
  }();
  return files;
}

}  // namespace

bool classifier_fits(const ClassifierFile& file, const Model& model) {
  const bool same_sizes =
      file.vocabulary_size == model.config().vocab_size &&
      file.classifier.shape().embedding_width == model.config().embedding_length;
  return same_sizes &&
         probe_likeness(file, read_embeddings(model, file.probe_tokens)) >= kLeastProbeLikeness;
}

const ClassifierFile* find_classifier(const Model& model) {
  const std::vector<ClassifierFile>& files = built_in_classifiers();
  const auto found = std::find_if(files.begin(), files.end(), [&](const ClassifierFile& file) {
    return classifier_fits(file, model);
  });
  return found == files.end() ? nullptr : &*found;
}

std::vector<Region> classify_tokens(const Model& model, const RegionClassifier& classifier,
                                    std::span<const TokenId> tokens) {
  DistinctTokens distinct(model.config().vocab_size);
  const std::vector<std::int32_t> rows = distinct.rows_of(tokens);
  const std::vector<std::int32_t> places = segment_places(model, tokens);
  const std::vector<float> projected =
      project_rows(classifier, read_embeddings(model, distinct.tokens()));
  return classifier.classify({rows, places}, projected);
}

std::optional<std::vector<Region>> classify_tokens(const Model& model,
                                                   std::span<const TokenId> tokens) {
  const ClassifierFile* const file = find_classifier(model);
  if (file == nullptr) return std::nullopt;
  return classify_tokens(model, file->classifier, tokens);
}

Result<PromptLabels> label_raw_prompt(const Model& model, const Prompt& prompt) {
  if (prompt.tokens.size() < kFewRawTokens) return PromptLabels();
  const auto regions = classify_tokens(model, prompt.tokens);
  if (!regions.has_value()) return label_prompt(prompt);
  return label_by_regions(prompt, *regions);
}

ClassifierFile classifier_file_for(const Model& model, std::string name,
                                   RegionClassifier classifier) {
  std::vector<TokenId> probes = probe_tokens(model.config().vocab_size);
  std::vector<float> projections = project_rows(classifier, read_embeddings(model, probes));
  return {std::move(name), model.config().vocab_size, std::move(probes), std::move(projections),
          std::move(classifier)};
}

}  // namespace memdecay
