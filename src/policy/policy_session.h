// PolicySession: a policy over a stream of tokens, for those who have no pages of their own: it
// cuts tokens into pages, keeps ids and time, and carries plans out on its own books.
//
// A page closes when it is full or when what comes next differs in region, round, item or pin; page
// ids grow and are never used twice. This is what include/memdecay/policy.h wraps.
// Threads: one owner. Cost: append O(pages made * log n); the rest as the policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "policy/policies/make_policy.h"

namespace memdecay {

struct PolicySessionOptions {
  std::string policy = "memdecay";
  PolicyOptions options = {};
  std::int32_t page_tokens = 32;
  std::uint64_t bytes_per_token = 0;  ///< in fp16
  /// Bytes of the other forms as shares of fp16's, with the rounding error of each.
  std::array<float, kPageFormCount> form_share = {1.0F, 0.56F, 0.44F, 0.31F};
  std::array<float, kPageFormCount> form_error = {0.0F, 0.004F, 0.03F, 0.08F};
};

/// What `tokens` tokens have in common.
struct AppendRequest {
  std::int32_t tokens = 0;
  Region region = Region::kOrdinary;
  bool pinned = false;
  std::int32_t tool_round = kNoToolRound;
  bool tool_core = false;
  std::int32_t item = kNoItem;
  std::int32_t exact_tokens = 0;  ///< how many of them are exact values
};

class PolicySession {
 public:
  /// kInvalidArgument or kNotFound say what is wrong with the options.
  static Result<PolicySession> open(const PolicySessionOptions& options);

  /// The page of the first token added, or why nothing was added.
  Result<TrackedPageId> append(const AppendRequest& request);
  /// Closes the last page: the next token starts another.
  void seal();
  Status observe(const EvidenceBatch& batch);
  /// Steps follow from append(); this tells the seconds, which must not fall.
  Status advance(double seconds);
  EvictionPlan plan(const PlanRequest& request) const { return policy_->plan(request); }
  /// Carries a plan out. kInvalidArgument, and nothing changed, where a page is gone or has not the
  /// form that the action starts from.
  Status apply(std::span<const PlanAction> actions);
  /// An item (an instruction, a result) is over: its floor is released.
  void end_item(std::int32_t item);
  Result<Explanation> explain(TrackedPageId page) const;
  bool holds(TrackedPageId page) const;
  std::uint64_t live_bytes() const { return policy_->tracked_bytes(); }
  std::int32_t page_count() const { return static_cast<std::int32_t>(pages_.size()); }
  std::int64_t tokens() const { return time_.step; }

 private:
  struct Page {
    PageMeta meta;
    std::int32_t exact_tokens = 0;
    bool live = false;
  };
  explicit PolicySession(const PolicySessionOptions& options) : options_(options) {}
  bool continues_last(const AppendRequest& request) const;
  void price(Page& page) const;

  PolicySessionOptions options_;
  EvictionPolicyHandle policy_;
  std::vector<Page> pages_;  // by id, gone ones too
  PolicyTime time_;
};

}  // namespace memdecay
