#include "sched/batch_planner.h"

#include <algorithm>

#include "core/check.h"

namespace memdecay {

BatchPlanner::BatchPlanner(int max_tokens, int chunk_tokens)
    : max_tokens_(max_tokens), chunk_tokens_(chunk_tokens) {
  MEMDECAY_CHECK(max_tokens >= 1 && chunk_tokens >= 1);
}

std::vector<PlannedTokens> BatchPlanner::plan(const std::vector<WaitingTokens>& waiting) const {
  std::vector<PlannedTokens> planned;
  int left = max_tokens_;
  for (const WaitingTokens& request : waiting) {
    if (request.tokens != 1 || left == 0) continue;
    planned.push_back({request.request, 1});
    --left;
  }
  // With streams running, prompts share one chunk; alone, they may fill the whole pass.
  left = std::min(left, planned.empty() ? max_tokens_ : chunk_tokens_);
  for (const WaitingTokens& request : waiting) {
    if (request.tokens <= 1 || left == 0) continue;
    const int tokens = std::min(request.tokens, left);
    planned.push_back({request.request, tokens});
    left -= tokens;
  }
  return planned;
}

}  // namespace memdecay
