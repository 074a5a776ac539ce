// BatchPlanner: which waiting tokens go into the next forward pass.
//
// Decode first: every request that waits for exactly one token gets it, so no running stream stalls
// behind a long prompt. What is left of the pass goes to prompts in order of arrival, in slices of
// at most `chunk_tokens`, so that a long prompt is cut between decode steps. Pure: the same waiting
// list gives the same plan.
//
// Invariants: planned tokens <= max_tokens; a request appears at most once; at least one token is
// planned when anything waits; the first prompt in line always gets a token unless decode fills the
// pass.
#pragma once

#include <cstddef>
#include <vector>

namespace memdecay {

struct WaitingTokens {
  std::size_t request = 0;  ///< the caller's index
  int tokens = 0;           ///< > 0: how many of its tokens have no keys and values yet
};

struct PlannedTokens {
  std::size_t request = 0;
  int tokens = 0;  ///< the first `tokens` of those that wait
};

class BatchPlanner {
 public:
  /// REQUIRES: both >= 1.
  BatchPlanner(int max_tokens, int chunk_tokens);

  /// `waiting` in order of arrival.
  std::vector<PlannedTokens> plan(const std::vector<WaitingTokens>& waiting) const;

 private:
  int max_tokens_;
  int chunk_tokens_;
};

}  // namespace memdecay
