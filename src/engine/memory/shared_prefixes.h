// SharedPrefixes: exact prefixes that the sessions of one engine share, through the cache's
// PrefixTree.
//
//     lookup: match(sequence, ...)      the sequence takes the longest remembered prefix of the
//                                       tokens, if that is more than it holds
//     after a pass: remember(sequence, ...)   what was sealed, exactly computed, and is new
//     room: give_way(bytes)             before any session loses something
//
// Attention sums by pages, so a page is the same only with the same borders before it: a match uses
// the borders that the sequence would have made itself, and a hit has the bits of a miss. What is
// remembered with other borders is found as far as the borders agree and the next page's first
// slots after that. Models with sliding windows share full pages only, since their groups cut
// pages at other places as soon as one is not. A page has one place in the tree: of one that was
// cut back and then sealed by a border a copy is remembered.
//
// Invariants: nothing that was dropped, demoted, packed, or computed after that is remembered
// (Sequence::exact_tokens()); a scope's pages are taken by that scope alone; pins live within a
// call. Threads: the engine's. Cost: match and remember O(pages of the prefix), and find_difference
// of prefix_tree.h where a match falls short.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kv/kv_cache.h"

namespace memdecay {

class SharedPrefixes {
 public:
  /// Gives the cache its tree. `fingerprint`: of everything that changes what keys a token has.
  /// `unbudgeted_bytes`: most bytes that it may keep beside the sessions' where the cache has no
  /// budget. Null where every group has a window: there no page outlives it.
  static Result<std::unique_ptr<SharedPrefixes>> create(KvCache& cache, std::string fingerprint,
                                                        std::uint64_t unbudgeted_bytes);

  struct Match {
    Position taken_tokens = 0;  ///< that the sequence did not hold before
    bool replaced_own = false;  ///< what it held before went
    PrefixDifference difference;
  };
  /// Extends `sequence`, which holds the first size() of `tokens`, or replaces what it holds where
  /// that is neither exact nor longer. `cuts`: where the sequence would begin pages, ascending.
  /// Afterwards it holds the first size() of `tokens`, which may be fewer than before where the
  /// budget has no room for its table. `most_pages`: that it may hold then, its own ones counted.
  Match match(Sequence& sequence, const PrefixScope& scope, std::span<const TokenId> tokens,
              std::span<const Position> cuts, std::size_t most_pages,
              PrefixDifference::Audience audience);

  /// Remembers the sealed, exact pages of a sequence that holds `tokens`. `done`: up to where that
  /// was so after the last call; it moves on.
  void remember(const Sequence& sequence, const PrefixScope& scope, std::span<const TokenId> tokens,
                Position& done);

  /// Lets pages go that no session needs, least recently used first. Returns the bytes freed.
  std::uint64_t give_way(std::uint64_t bytes) {
    return tree_.evict(bytes, PrefixTree::Victims::kAlsoShared);
  }
  void clear() { tree_.clear(); }
  /// Without a budget: lets go of what is too much. To be called when sessions let pages go.
  void hold_limit();
  const PrefixTree& tree() const { return tree_; }

 private:
  SharedPrefixes(KvCache& cache, LayerGroupId group, std::uint64_t unbudgeted_bytes);
  std::vector<std::int32_t> page_sizes(const Sequence& sequence, bool keeps_own,
                                       std::span<const Position> cuts, Position end) const;
  std::int32_t page_tokens() const;
  void keep_full(std::vector<std::int32_t>& sizes, bool last_may_be_short) const;
  void copy_last_page(Sequence& sequence, const PrefixPage& page) const;
  void take(Sequence& sequence, const PrefixPin& pin, bool keeps_own);
  std::vector<PageHandle> pages_at(const Sequence& sequence, Position first_position) const;
  bool copy_remembered(std::vector<PageHandle>& pages) const;
  bool insert_page(const Sequence& sequence, const PrefixScope& scope, PrefixPin& pin,
                   std::span<const TokenId> tokens, Position first_position);

  KvCache& cache_;
  PrefixTree& tree_;
  LayerGroupId group_;  // without a window: its borders are the path's
  bool has_windows_ = false;
  std::uint64_t unbudgeted_bytes_;
};

}  // namespace memdecay
