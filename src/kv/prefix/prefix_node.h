// PrefixNode: one remembered page of a PrefixTree, and the two orders nodes stand in.
//
// SiblingOrder: the children of one node by token ids (lexicographic, a shorter run before its
// continuations), a treap through the nodes; priorities are the keys' leading bits. RecencyList:
// unpinned nodes by the moment they were let go, a list through the nodes. Both own nothing and
// allocate nothing. Only PrefixTree uses these. Threads: one owner.
// Cost: SiblingOrder O(log siblings) expected, RecencyList O(1).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/id.h"
#include "kv/page_pool.h"
#include "kv/prefix/lineage.h"

namespace memdecay {

struct PrefixNode {
  static constexpr std::int32_t kMaxTokens = 64;  ///< the largest page

  LineageKey key;
  PrefixNode* parent = nullptr;    ///< null in a root
  PrefixNode* children = nullptr;  ///< top of their SiblingOrder
  PrefixNode* before = nullptr;    ///< in the parent's SiblingOrder: smaller token ids
  PrefixNode* behind = nullptr;    ///< larger ones
  PrefixNode* older = nullptr;     ///< in the RecencyList
  PrefixNode* newer = nullptr;
  std::uint64_t let_go = 0;  ///< when it entered the RecencyList; 0 outside it
  std::int32_t pins = 0;     ///< living pins whose path it is on
  bool in_the_way = false;   ///< of bytes that could be freed; valid within one eviction
  std::int32_t child_count = 0;
  Position end = 0;  ///< position after its last token; 0 in a root
  std::int32_t token_count = 0;
  std::array<TokenId, kMaxTokens> token_ids{};
  std::unique_ptr<PageHandle[]> pages;  ///< one a layer group

  std::span<const TokenId> tokens() const {
    return std::span(token_ids).first(static_cast<std::size_t>(token_count));
  }
  Position begin() const { return end - token_count; }
  bool is_root() const { return parent == nullptr; }
};

/// How many tokens two runs share at their start.
std::int32_t common_tokens(std::span<const TokenId> a, std::span<const TokenId> b);

/// The children of a node in their order.
std::vector<PrefixNode*> children_of(const PrefixNode& node);
/// All descendants of a node, parents before children. Cost: O(descendants).
std::vector<PrefixNode*> nodes_below(const PrefixNode& node);

namespace sibling_order {

/// REQUIRES: no sibling has the node's tokens.
void insert(PrefixNode*& top, PrefixNode& node);
/// REQUIRES: the node is there.
void erase(PrefixNode*& top, PrefixNode& node);

struct Closest {
  PrefixNode* node = nullptr;  ///< null only where there are no siblings
  std::int32_t common = 0;     ///< tokens that it shares with the wanted ones
  bool equal = false;
};
/// The sibling with exactly `wanted`, or else one that shares most tokens with it.
Closest closest(PrefixNode* top, std::span<const TokenId> wanted);

}  // namespace sibling_order

class RecencyList {
 public:
  PrefixNode* oldest() const { return oldest_; }
  PrefixNode* newest() const { return newest_; }
  /// What the next node's let_go will exceed.
  std::uint64_t now() const { return now_; }
  void push_newest(PrefixNode& node);
  void remove(PrefixNode& node);
  void move_to_newest(PrefixNode& node) {
    remove(node);
    push_newest(node);
  }

 private:
  PrefixNode* oldest_ = nullptr;
  PrefixNode* newest_ = nullptr;
  std::uint64_t now_ = 0;
};

}  // namespace memdecay
