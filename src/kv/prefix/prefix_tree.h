// PrefixTree: remembers sealed, exact pages by the tokens they hold, so that a sequence with the
// same beginning takes them instead of computing them. One per KvCache, shared by all tenants.
//
// It holds one reference to each page, writes to none, computes nothing, and evicts only when told.
// A scope (tenant and adapter) sees its own pages only. There is no lookup without a pin; nothing
// that a living PrefixPin covers is evicted. Token ids decide what matches, never a hash.
//
//     auto pin = tree.lookup_and_pin(scope, plan);      // plan: tokens and the caller's page cuts
//     take share()s of pin.pages(); copy pin.partial_tokens() slots of pin.partial_page()
//     ...compute the rest...
//     tree.insert(scope, pin, tokens, pages, PageLineage::kExact);   // page after page
//
// A pin is for the length of a call, not of a session: the bytes of pinned pages cannot come back.
// To get logits, leave the last token out of the plan. In a group with a sliding window nodes may
// lack pages; a match ends where the query after it has its whole window. A page stands in one
// place: its pool knows that it is remembered (PageHandle::remembered()), the tree knows where.
//
// Invariants (check() tests them): docs/design/prefix_tree.md. Every byte of the tree's own records
// is reserved from the budget first. Threads: one owner (the engine thread).
// Cost: lookup and release O(pages * log siblings), insert one hash and O(log pages) more, evict
// the same without the hash and the pool's release a page; memory(), and evict() where nobody but
// the tree holds no page, O(groups).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/id.h"
#include "core/status.h"
#include "kv/kv_budget.h"
#include "kv/page_pool.h"
#include "kv/prefix/lineage.h"
#include "kv/prefix/prefix_difference.h"
#include "kv/prefix/prefix_node.h"

namespace memdecay {

class PrefixTree;

/// A prompt and where its owner cuts it into pages. REQUIRES: the counts are 1..page_tokens and add
/// up to all tokens.
struct PrefixPlan {
  std::span<const TokenId> tokens;
  std::span<const std::int32_t> page_tokens;  ///< of each page, in order
};

/// A remembered page, valid while its pin lives.
struct PrefixPage {
  std::span<const TokenId> tokens;
  Position first_position = 0;
  /// One a layer group; those of windowed groups may name no page.
  std::span<const PageHandle> pages;
};

/// What a lookup found; keeps it from being evicted. Move-only. REQUIRES: the tree outlives it.
class [[nodiscard]] PrefixPin {
 public:
  PrefixPin() = default;  ///< pins nothing, belongs to no tree
  PrefixPin(PrefixPin&& other) noexcept;
  PrefixPin& operator=(PrefixPin&& other) noexcept;
  ~PrefixPin() { release(); }

  /// Tokens of the whole pages: insert() goes on from there.
  Position matched_tokens() const { return tip_ != nullptr ? tip_->end : 0; }
  /// The whole pages, oldest first. Cost: O(pages).
  std::vector<PrefixPage> pages() const;
  /// Slots of partial_page() that hold the next planned tokens; 0: there is no such page.
  std::int32_t partial_tokens() const { return partial_tokens_; }
  /// REQUIRES: partial_tokens() > 0.
  PrefixPage partial_page() const;
  /// Lets everything go; it was used at this moment.
  void release();

 private:
  friend class PrefixTree;
  explicit PrefixPin(PrefixTree* tree) : tree_(tree) {}
  PrefixPage page(const PrefixNode& node) const;

  PrefixTree* tree_ = nullptr;
  const PrefixNode* root_ = nullptr;  // means something while something is pinned
  PrefixNode* tip_ = nullptr;         // deepest whole page; its path is pinned
  PrefixNode* partial_ = nullptr;     // a descendant of the path, pinned with it
  std::int32_t partial_tokens_ = 0;
};

/// Whether a page was computed from everything before it, in its group's own form.
enum class PageLineage : std::uint8_t { kExact, kLossy };

struct PrefixTreeCounters {
  std::int32_t nodes = 0;
  std::int32_t tenants = 0;  ///< scopes that have nodes
  std::uint64_t record_bytes = 0;
  std::uint64_t lookups = 0;
  std::uint64_t queried_tokens = 0;
  std::uint64_t matched_tokens = 0;  ///< whole pages
  std::uint64_t partial_tokens = 0;  ///< to be copied
  std::uint64_t inserted_pages = 0;
  std::uint64_t duplicate_pages = 0;  ///< inserted while an equal one was there
  std::uint64_t refused_pages = 0;    ///< the budget had no room for the record
  std::uint64_t evicted_pages = 0;    ///< forgotten ones included
};

/// Where the bytes of remembered pages are. Windowed and other groups together.
struct PrefixTreeMemory {
  std::int32_t cached_only_pages = 0;  ///< held by the tree alone: what evict() can free
  std::int32_t shared_pages = 0;       ///< living sequences hold them too
  std::uint64_t cached_only_bytes = 0;
  std::uint64_t shared_bytes = 0;
};

class PrefixTree {
 public:
  /// What evict() may take.
  enum class Victims : std::uint8_t {
    kCachedOnly,  ///< pages that the tree alone holds; those passed over count as used now
    kAlsoShared,  ///< then also what stands after or beside such a page: pages of living sequences,
                  ///< which keep them. Cost: O(nodes) where such a page is left
  };
  enum class Insertion : std::uint8_t {
    kAdded,
    kPresent,    ///< an equal page was there and stays; the given references are dropped
    kNoRoom,     ///< the budget has no room for the record; nothing changed
    kElsewhere,  ///< one of the pages is remembered with other tokens; nothing changed
  };
  static constexpr std::int32_t kRememberedEvictions = 4096;

  /// `pools`: one a layer group, in the order of the hasher's groups; they, and the budget, outlive
  /// the tree. REQUIRES: one page_tokens for all groups. Fails with kResourceExhausted where the
  /// budget has no room for the list of past evictions.
  static Result<std::unique_ptr<PrefixTree>> create(
      KvBudget& budget, std::vector<PagePool*> pools, std::unique_ptr<LineageHasher> hasher,
      std::int32_t remembered_evictions = kRememberedEvictions);
  ~PrefixTree();  ///< REQUIRES: no pin is left
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  /// The longest run of remembered pages that equal the planned ones, and the page that shares most
  /// tokens with the next planned one.
  PrefixPin lookup_and_pin(const PrefixScope& scope, const PrefixPlan& plan);

  /// Remembers a sealed page after the pin's last whole page, and moves the pin on to it: the
  /// partial page is let go. Takes the references unless nothing changed. REQUIRES: the scope
  /// that the pin was looked up with; kExact; one handle a group, from its pool, only those of
  /// windowed groups without a page.
  Insertion insert(const PrefixScope& scope, PrefixPin& pin, std::span<const TokenId> tokens,
                   std::span<PageHandle> pages, PageLineage lineage);

  /// Evicts unpinned leaves, least recently used first, until `bytes` of the budget came back or
  /// nothing is left that may go. Returns what came back.
  std::uint64_t evict(std::uint64_t bytes, Victims victims);
  /// Evicts everything that is not pinned.
  std::uint64_t clear();
  /// Lets go of the place where a page is remembered, if anywhere, and of everything after it, but
  /// of what is pinned: for a sequence that will change what only it and the tree hold. Returns the
  /// bytes that came back. Cost: O(log pages + pages dropped or kept).
  std::uint64_t forget_page(const PageHandle& page);

  /// Why `pin`, this plan's lookup before any insert(), did not match more. Cost: as a lookup,
  /// more where prefixes are remembered with several borders; for the operator, per tenant.
  PrefixDifference find_difference(const PrefixScope& scope, const PrefixPlan& plan,
                                   const PrefixPin& pin, PrefixDifference::Audience audience) const;

  /// The name of the pin's last whole page (of its tenant, without one) outside this process.
  LineageKey key(const PrefixScope& scope, const PrefixPin& pin) const;
  const LineageHasher& hasher() const { return *hasher_; }

  PrefixTreeCounters counters() const;
  PrefixTreeMemory memory() const;  ///< Cost: O(groups)
  /// Budget bytes of one remembered page's record.
  std::uint64_t node_bytes() const;
  /// Bytes of the list of past evictions: what an empty tree takes.
  std::uint64_t empty_bytes() const { return past_evictions_.size() * sizeof(std::uint64_t); }
  /// Adds the tree's references to named[page]; pages past its end must have none.
  void count_references(LayerGroupId group, std::span<std::int32_t> named) const;
  /// kCorrupt names the first broken invariant. Cost: O(nodes).
  Status check() const;

 private:
  friend class PrefixPin;
  struct Root : PrefixNode {
    std::string salt, adapter;
  };
  class WindowWatch;

  PrefixTree(KvBudget& budget, std::vector<PagePool*> pools, std::unique_ptr<LineageHasher> hasher,
             BudgetReservation records, std::int32_t remembered_evictions);
  const Root* find_root(const PrefixScope& scope) const;
  PrefixNode& add_root(const PrefixScope& scope);
  PrefixNode& add_node(PrefixNode& parent, std::span<const TokenId> tokens,
                       std::span<PageHandle> pages);
  void take_page(PrefixNode& node, std::size_t group, PageHandle& page);
  void let_page_go(PrefixNode& node, std::size_t group);
  std::int32_t idle_pages() const;
  std::uint64_t remove(PrefixNode& leaf);
  std::uint64_t evict_shared(std::uint64_t bytes);
  std::uint64_t forget_from(PrefixNode& node);
  void check_plan(const PrefixPlan& plan) const;
  void check_insertion(const PrefixScope& scope, const PrefixPin& pin,
                       std::span<const TokenId> tokens, std::span<const PageHandle> pages) const;
  bool cached_only(const PrefixNode& node) const;
  bool frees_a_page(const PrefixNode& node) const;
  void pin_node(PrefixNode& node);
  void unpin_node(PrefixNode& node);
  void pin_path(PrefixNode* end);
  void release(PrefixPin& pin);
  void move_on(PrefixPin& pin, PrefixNode& node);
  void use_path(PrefixNode& leaf);
  bool was_evicted(const LineageKey& key) const;
  bool next_page_was_evicted(const PrefixScope& scope, const PrefixPlan& plan,
                             const PrefixPin& pin) const;
  Position equal_tokens_elsewhere(const PrefixScope& scope, std::span<const TokenId> tokens) const;
  static std::uint64_t root_bytes(const PrefixScope& scope);
  static std::int32_t pins_of_children(const PrefixNode& node);
  static Status check_children(const PrefixNode& node);
  Status check_node(const PrefixNode& node) const;
  Status check_pages(std::size_t group) const;
  Status check_list() const;
  Status check_totals() const;

  KvBudget& budget_;
  std::vector<PagePool*> pools_;
  std::unique_ptr<LineageHasher> hasher_;
  BudgetReservation records_;
  std::map<PrefixScope, std::unique_ptr<Root>> roots_;  // named by views of the root's own strings
  std::vector<std::map<PageId, PrefixNode*>> places_;   // by layer group: where a page stands
  RecencyList recency_;
  std::vector<std::uint64_t> past_evictions_;  // leading bits of keys, a ring
  std::size_t next_eviction_ = 0;
  std::int64_t pin_ends_ = 0;  // living pins that pin a path
  PrefixTreeCounters counters_;
};

}  // namespace memdecay
