#include "kv/prefix/prefix_node.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "core/check.h"

namespace memdecay {
namespace {

bool tokens_before(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

bool above(const PrefixNode& a, const PrefixNode& b) {
  return a.key.leading_bits() >= b.key.leading_bits();
}

}  // namespace

std::int32_t common_tokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t most = std::min(a.size(), b.size());
  const auto first = a.first(most);
  return static_cast<std::int32_t>(std::mismatch(first.begin(), first.end(), b.begin()).first -
                                   first.begin());
}

std::vector<PrefixNode*> children_of(const PrefixNode& node) {
  std::vector<PrefixNode*> found;
  std::vector<PrefixNode*> open;
  for (PrefixNode* next = node.children; next != nullptr || !open.empty();) {
    for (; next != nullptr; next = next->before) open.push_back(next);
    found.push_back(open.back());
    next = open.back()->behind;
    open.pop_back();
  }
  return found;
}

std::vector<PrefixNode*> nodes_below(const PrefixNode& node) {
  std::vector<PrefixNode*> found = children_of(node);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<PrefixNode*> children = children_of(*found[i]);
    found.insert(found.end(), children.begin(), children.end());
  }
  return found;
}

namespace sibling_order {

void insert(PrefixNode*& top, PrefixNode& node) {
  PrefixNode** link = &top;
  while (*link != nullptr && above(**link, node))
    link = tokens_before(node.tokens(), (*link)->tokens()) ? &(*link)->before : &(*link)->behind;
  // The node takes this place; what was below it is divided by its tokens.
  PrefixNode* rest = std::exchange(*link, &node);
  PrefixNode** smaller = &node.before;
  PrefixNode** larger = &node.behind;
  while (rest != nullptr) {
    if (tokens_before(rest->tokens(), node.tokens())) {
      *smaller = rest;
      smaller = &rest->behind;
      rest = rest->behind;
    } else {
      *larger = rest;
      larger = &rest->before;
      rest = rest->before;
    }
  }
  *smaller = *larger = nullptr;
}

void erase(PrefixNode*& top, PrefixNode& node) {
  PrefixNode** link = &top;
  while (*link != &node) {
    MEMDECAY_CHECK(*link != nullptr);
    link = tokens_before(node.tokens(), (*link)->tokens()) ? &(*link)->before : &(*link)->behind;
  }
  PrefixNode* smaller = std::exchange(node.before, nullptr);
  PrefixNode* larger = std::exchange(node.behind, nullptr);
  while (smaller != nullptr && larger != nullptr) {
    if (above(*smaller, *larger)) {
      *link = smaller;
      link = &smaller->behind;
      smaller = smaller->behind;
    } else {
      *link = larger;
      link = &larger->before;
      larger = larger->before;
    }
  }
  *link = smaller != nullptr ? smaller : larger;
}

Closest closest(PrefixNode* top, std::span<const TokenId> wanted) {
  // Who shares most is the wanted tokens' neighbour in the order, and both are on the path.
  Closest best;
  for (PrefixNode* node = top; node != nullptr;) {
    const std::span<const TokenId> tokens = node->tokens();
    const std::int32_t common = common_tokens(tokens, wanted);
    const auto at = static_cast<std::size_t>(common);
    if (best.node == nullptr || common > best.common) best = {node, common, false};
    if (at == tokens.size() && at == wanted.size()) return {node, common, true};
    const bool node_is_smaller =
        at == tokens.size() || (at < wanted.size() && tokens[at] < wanted[at]);
    node = node_is_smaller ? node->behind : node->before;
  }
  return best;
}

}  // namespace sibling_order

void RecencyList::push_newest(PrefixNode& node) {
  MEMDECAY_CHECK(node.let_go == 0);
  node.let_go = ++now_;
  node.older = newest_;
  node.newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = &node;
  newest_ = &node;
}

void RecencyList::remove(PrefixNode& node) {
  MEMDECAY_CHECK(node.let_go != 0);
  (node.older != nullptr ? node.older->newer : oldest_) = node.newer;
  (node.newer != nullptr ? node.newer->older : newest_) = node.older;
  node.older = node.newer = nullptr;
  node.let_go = 0;
}

}  // namespace memdecay
