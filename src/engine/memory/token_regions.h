// Token regions: the region classifier (policy/classifier/region_classifier.h) asked about a
// model's tokens, for prompts of which nobody says who speaks.
//
// Trained classifiers are built in (models/classifier/, made by `memdecay calibrate classifier`). A
// model is served by the one whose probe tokens its embeddings agree with; other models have none,
// and their raw prompts go by the rules.
// Any thread. Cost: about 30k products a distinct token and 10k a token.
// REQUIRES everywhere: a model that was loaded with weights.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/id.h"
#include "engine/memory/prompt_labels.h"
#include "engine/model.h"
#include "engine/prompt/prompt.h"
#include "policy/classifier/region_classifier_file.h"

namespace memdecay {

/// Whether this classifier was trained for this model, or one with nearly its embeddings.
bool classifier_fits(const ClassifierFile& file, const Model& model);

/// The built-in classifier of this model, or null.
const ClassifierFile* find_classifier(const Model& model);

/// The region of each token by a classifier that fits the model.
std::vector<Region> classify_tokens(const Model& model, const RegionClassifier& classifier,
                                    std::span<const TokenId> tokens);

/// The same by the built-in one; none where no classifier was trained for this model.
std::optional<std::vector<Region>> classify_tokens(const Model& model,
                                                   std::span<const TokenId> tokens);

/// A shorter raw prompt is not worth a page of its own.
inline constexpr std::size_t kFewRawTokens = 64;

/// Labels of a prompt without chat structure: none, which is recent dialogue, for less than
/// kFewRawTokens; else by the built-in classifier, or where the model has none by the rules, to
/// which it is one user turn.
Result<PromptLabels> label_raw_prompt(const Model& model, const Prompt& prompt);

/// What a classifier's file keeps of a model beside the weights.
ClassifierFile classifier_file_for(const Model& model, std::string name,
                                   RegionClassifier classifier);

}  // namespace memdecay
