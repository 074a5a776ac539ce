// Region fates: what a memory still holds of each region of a session, and how old tokens were when
// it let them go.
//
// A token's age is how many tokens there were from it on. Plain values, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/id.h"
#include "engine/memory/session_memory.h"
#include "eval/metrics/survival_curve.h"
#include "policy/regions/region_rules.h"

namespace memdecay {

/// Ages are told in steps of so many tokens.
inline constexpr std::int64_t kAgeStep = 32;

/// Tokens of the span that lie in one of the runs, which ascend. O(log(runs) + those within).
Position tokens_within(const TokenRange& span, std::span<const PositionRun> runs);

/// Region name -> share of its tokens that are held. `regions` cover [0, tokens) in order, `held`
/// is ascending. O(both).
std::map<std::string, double> kept_shares(std::span<const RegionSpan> regions,
                                          std::span<const PositionRun> held);

/// Notes when each token of one memory was dropped; the first time counts.
class DropAges {
 public:
  /// `regions` cover [0, tokens) in order.
  explicit DropAges(std::span<const RegionSpan> regions);

  /// After tokens were dropped, when the session had `size`: those that are held. O(tokens).
  void look(std::span<const PositionRun> held, Position size);
  /// Region name -> how many tokens were let go at which age, and how many lived to which; ages
  /// ascend. `size` is what was played. O(tokens).
  std::map<std::string, std::vector<LifeCount>> lives(Position size) const;

 private:
  std::span<const RegionSpan> regions_;
  std::vector<Position> dropped_at_;  ///< [tokens]: the session's size then; 0: never
};

}  // namespace memdecay
