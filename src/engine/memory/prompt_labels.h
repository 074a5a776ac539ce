// PromptLabels: what the memory is told about a prompt's tokens: their regions, which of them are
// exact values, and who speaks while they are computed.
//
// label_prompt() reads chat structure from where each token came from (prompt.h), asks the policy's
// rules for regions, which give way to what the client says of a message, and makes the borders
// coarse enough to cut pages at: a run shorter than kSmallestRunTokens joins the stronger of its
// neighbours in the message. Pure, any thread. Cost: O(bytes + tokens).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/prompt/prompt.h"
#include "policy/evidence.h"
#include "policy/regions/region_rules.h"

namespace memdecay {

inline constexpr std::int32_t kSmallestRunTokens = 8;

struct PromptLabels {
  std::vector<RegionSpan> regions;  ///< cover [0, tokens) in order; neighbours differ
  std::vector<std::uint8_t> exact;  ///< [tokens]: 1 where it is part of an exact value
  std::vector<QueryPhase> phases;   ///< [tokens]: what evidence of its query counts as
};

/// A raw prompt (no roles) is one user turn here; token_regions.h knows better where it can.
Result<PromptLabels> label_prompt(const Prompt& prompt, const RegionRuleOptions& options = {});

/// Labels of a prompt whose tokens' regions somebody else says: nothing is pinned, there are no
/// rounds and items, and who speaks is not known. REQUIRES: one region a token.
PromptLabels label_by_regions(const Prompt& prompt, std::span<const Region> regions);

/// Joins runs that are too short to be worth a page of their own.
std::vector<RegionSpan> coarsen(const std::vector<RegionSpan>& regions,
                                std::int32_t smallest_tokens);

}  // namespace memdecay
