#include "kv/prefix/prefix_difference.h"

#include <algorithm>
#include <vector>

#include "kv/prefix/prefix_tree.h"

namespace memdecay {
namespace {

using Cause = PrefixDifference::Cause;

/// How far remembered tokens follow a plan's from a root, whatever the page borders.
struct TokenWalk {
  const PrefixNode* node = nullptr;  // the last one that was followed to its end
  sibling_order::Closest parted;     // a child of it, and what it still shares
  Position equal = 0;
};

/// The children of `node` that `rest` goes on through to their ends: with other borders more than
/// one may be.
std::vector<const PrefixNode*> children_passed(const PrefixNode& node,
                                               std::span<const TokenId> rest,
                                               const sibling_order::Closest& closest) {
  std::vector<const PrefixNode*> passed;
  if (closest.common > 0 && closest.common == closest.node->token_count)
    passed.push_back(closest.node);
  if (node.child_count == 1) return passed;
  for (std::int32_t tokens = closest.common; tokens >= 1; --tokens) {
    const auto found =
        sibling_order::closest(node.children, rest.first(static_cast<std::size_t>(tokens)));
    if (found.equal && found.node != closest.node) passed.push_back(found.node);
  }
  return passed;
}

TokenWalk walk_tokens(const PrefixNode& root, std::span<const TokenId> tokens) {
  TokenWalk best;
  std::vector<const PrefixNode*> open = {&root};
  while (!open.empty()) {
    const PrefixNode* const node = open.back();
    open.pop_back();
    const auto rest = tokens.subspan(static_cast<std::size_t>(node->end));
    const auto closest = sibling_order::closest(node->children, rest);
    if (node->end + closest.common >= best.equal)
      best = {node, closest, node->end + closest.common};
    const auto passed = children_passed(*node, rest, closest);
    open.insert(open.end(), passed.begin(), passed.end());
  }
  return best;
}

/// The remembered tokens after the walk's end, along any one branch.
std::vector<TokenId> going_on(const TokenWalk& walk) {
  std::vector<TokenId> tokens;
  auto skip = static_cast<std::size_t>(walk.parted.common);
  for (const PrefixNode* node = walk.parted.node;
       node != nullptr && tokens.size() < PrefixDifference::kContextTokens; node = node->children) {
    const auto more = node->tokens().subspan(skip);
    tokens.insert(tokens.end(), more.begin(), more.end());
    skip = 0;
  }
  tokens.resize(std::min(tokens.size(), PrefixDifference::kContextTokens));
  return tokens;
}

/// The plan's tokens around the first that differs.
void add_context(PrefixDifference& difference, std::span<const TokenId> tokens, Position equal) {
  constexpr std::size_t kMost = PrefixDifference::kContextTokens;
  const auto at = static_cast<std::size_t>(equal);
  const auto before = tokens.first(at).last(std::min(at, kMost));
  const auto planned = tokens.subspan(at).first(std::min(tokens.size() - at, kMost));
  difference.before.assign(before.begin(), before.end());
  difference.planned.assign(planned.begin(), planned.end());
}

}  // namespace

PrefixDifference difference_at(std::span<const TokenId> remembered,
                               std::span<const TokenId> planned, Position at) {
  PrefixDifference difference;
  difference.cause = Cause::kDiffers;
  difference.matched_tokens = at;
  difference.equal_tokens = at;
  add_context(difference, planned, at);
  const auto rest = remembered.subspan(static_cast<std::size_t>(at));
  const auto shown = rest.first(std::min(rest.size(), PrefixDifference::kContextTokens));
  difference.remembered.assign(shown.begin(), shown.end());
  return difference;
}

PrefixDifference PrefixTree::find_difference(const PrefixScope& scope, const PrefixPlan& plan,
                                             const PrefixPin& pin,
                                             PrefixDifference::Audience audience) const {
  check_plan(plan);
  PrefixDifference difference;
  difference.matched_tokens = pin.matched_tokens() + pin.partial_tokens();
  if (difference.matched_tokens == static_cast<Position>(plan.tokens.size())) {
    difference.equal_tokens = difference.matched_tokens;
    return difference;
  }
  const Root* const root = find_root(scope);
  TokenWalk walk;
  if (root != nullptr) {
    walk = walk_tokens(*root, plan.tokens);
    difference.equal_tokens = walk.equal;
  }
  if (next_page_was_evicted(scope, plan, pin)) {
    difference.cause = Cause::kEvicted;
  } else if (audience == PrefixDifference::Audience::kOperator &&
             equal_tokens_elsewhere(scope, plan.tokens) > difference.equal_tokens) {
    difference.cause = Cause::kOtherSalt;
  } else if (walk.equal == 0) {
    difference.cause = Cause::kNoEntry;
  } else if (walk.equal > difference.matched_tokens) {
    difference.cause = Cause::kOtherBorders;
  } else if (walk.parted.node == nullptr) {
    difference.cause = Cause::kNewText;
  } else {
    difference.cause = Cause::kDiffers;
    add_context(difference, plan.tokens, walk.equal);
    difference.remembered = going_on(walk);
  }
  return difference;
}

Position PrefixTree::equal_tokens_elsewhere(const PrefixScope& scope,
                                            std::span<const TokenId> tokens) const {
  Position most = 0;
  for (const auto& [other, root] : roots_)
    if (other.salt != scope.salt && other.adapter == scope.adapter)
      most = std::max(most, walk_tokens(*root, tokens).equal);
  return most;
}

bool PrefixTree::next_page_was_evicted(const PrefixScope& scope, const PrefixPlan& plan,
                                       const PrefixPin& pin) const {
  // Where a window cut the match short, the next page is still there: not of use, though.
  Position at = 0;
  for (const std::int32_t count : plan.page_tokens) {
    if (at == pin.matched_tokens()) {
      const auto tokens =
          plan.tokens.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
      const PrefixNode* const parent = pin.tip_ != nullptr ? pin.tip_ : find_root(scope);
      if (parent != nullptr && sibling_order::closest(parent->children, tokens).equal) return true;
      return was_evicted(hasher_->child(key(scope, pin), tokens));
    }
    at += count;
  }
  return false;
}

}  // namespace memdecay
