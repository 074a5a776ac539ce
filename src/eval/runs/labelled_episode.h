// Labelled episodes: flat transcripts as a model's tokens, each with the region that the rules give
// it when they know the chat structure, and the one they give it when they do not.
//
// The first is the truth that the classifier learns and is measured by; the second is what a raw
// prompt got without it (one user turn: all of it the task's goal). Any thread. O(bytes).
#pragma once

#include <string>
#include <vector>

#include "engine/model.h"
#include "eval/runs/flat_transcript.h"
#include "eval/runs/trajectory.h"
#include "policy/regions/region_rules.h"

namespace memdecay {

struct LabelledEpisode {
  std::string task;
  std::string data_set;
  TranscriptStyle style = TranscriptStyle::kBare;
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> places;  ///< [tokens], segment_places()
  std::vector<RegionSpan> spans;     ///< by the rules with structure
  std::vector<Region> without;       ///< [tokens]: by the rules without structure
};

/// Regions token by token.
std::vector<Region> regions_of(const std::vector<RegionSpan>& spans);

Result<LabelledEpisode> label_episode(const Model& model, const Trajectory& run,
                                      TranscriptStyle style, std::size_t max_bytes);

}  // namespace memdecay
