// Evidence: what the attention kernels say about pages, by who asked.
//
// A batch is one kind of number for many pages at one moment. Attention mass is the share of
// attention a page got from each query, summed over the queries of a step; last query's mass is the
// share that the latest of them gave (0..1; of one query both are the same); the deletion error is
// |change of the output| / |output| if the page were gone; key similarity is the mean cosine of its
// keys to the mean key (-1..1).
// A view: the pages belong to the caller.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "policy/page_meta.h"

namespace memdecay {

enum class EvidenceKind : std::uint8_t {
  kAttentionMass,
  kDeletionError,
  kKeySimilarity,
  kLastQueryMass
};
inline constexpr std::size_t kEvidenceKindCount = 4;

/// What the asking tokens are: the assistant's reasoning, its calls and text, a tool result being
/// read, anything else being read.
enum class QueryPhase : std::uint8_t { kThink, kAct, kTool, kOther };
inline constexpr std::size_t kQueryPhaseCount = 4;

struct PageEvidence {
  TrackedPageId page;
  float value = 0;
};

struct EvidenceBatch {
  EvidenceKind kind = EvidenceKind::kAttentionMass;
  QueryPhase phase = QueryPhase::kOther;
  std::span<const PageEvidence> pages;
};

}  // namespace memdecay
