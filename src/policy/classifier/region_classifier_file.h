// The file of a trained region classifier (docs/formats/region_classifier.md): what the classifier
// says, and enough of the model it was trained for to know that model again.
//
// A model is known by the meaning of its embeddings, not by a hash of its file: the file keeps the
// projections of some probe tokens, and a model fits whose own embeddings project nearly there. So
// other quantizations of the model fit, and a stranger with the same vocabulary does not.
// Weights are stored as int8 with a scale a column. parse() checks every count before it is used
// and a checksum over all; damage is kCorrupt with one sentence, never a crash or a large
// allocation. Pure, any thread. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.h"
#include "core/status.h"
#include "policy/classifier/region_classifier.h"

namespace memdecay {

struct ClassifierFile {
  std::string model;  ///< whom it was trained for, for people
  std::int32_t vocabulary_size = 0;
  std::vector<TokenId> probe_tokens;     ///< ascending, within the vocabulary
  std::vector<float> probe_projections;  ///< [probes][projected_width]
  RegionClassifier classifier;
};

/// Evenly through the vocabulary.
std::vector<TokenId> probe_tokens(std::int32_t vocabulary_size);

/// Mean cosine between the stored projections and those of a model's embeddings of the probe
/// tokens, [probes][embedding_width]; 0 where widths differ.
double probe_likeness(const ClassifierFile& file, std::span<const float> embeddings);
/// At least this for the same model; strangers come out near 0.
inline constexpr double kLeastProbeLikeness = 0.9;

std::string serialize_classifier(const ClassifierFile& file);
/// kCorrupt or, for a newer version, kUnsupported.
Result<ClassifierFile> parse_classifier(std::string_view bytes);

}  // namespace memdecay
