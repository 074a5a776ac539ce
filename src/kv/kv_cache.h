// KvCache: the KV memory of one model: one budget, page pools per layer group and form, all
// sequences.
//
// It decides nothing about what to keep (policy does) and knows no token ids. Invariants, which
// validate() tests and names:
//     free + used = total pages of every pool, and no page is both;
//     references of a page = table entries that name it, over all living sequences, the prefix
//     tree, and other_pages; budget's bytes = pools + sequences + tree + other_bytes <= limit; the
//     equations of every page table hold; windows hold what the next query sees.
// A closed sequence leaves nothing: when all are gone and the tree is cleared, the budget is where
// it was after create().
// Threads: one owner (the engine thread) for everything; kernels get views.
// Cost: create a sequence O(groups); usage() and validate() O(table entries + pages ever used).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/id.h"
#include "core/paged_kv.h"
#include "core/status.h"
#include "kv/group_pools.h"
#include "kv/kv_budget.h"
#include "kv/page_pool.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/sequence.h"

namespace memdecay {

/// Layers that share a page geometry and a window.
struct KvLayerGroup {
  KvPageLayout layout;
  /// 0: every earlier token is seen; n: the last n tokens, the query's own included.
  std::int32_t window = 0;
};

struct KvCacheConfig {
  /// Their own forms are those that are written: fp16 or fp32.
  std::vector<KvLayerGroup> groups;
  /// Further forms that pages of unbounded groups can take; a group's own may be named and adds
  /// nothing. Each is a pool, which costs its tables (about 4.2 bytes a page that could be).
  std::vector<KvFormat> forms = {};
  /// Bytes for everything, or KvBudget::kUnlimited.
  std::uint64_t budget_bytes = KvBudget::kUnlimited;
  /// Tokens that windowed groups keep beyond their window: after an append (or trim()) at size s a
  /// sequence can be cut back to any size >= s - cut_back_tokens.
  std::int32_t cut_back_tokens = 0;
  /// Most pages per pool; 0: as many as the budget and the machine's memory can hold.
  std::int32_t max_pages = 0;
  /// Huge pages make long reads cheaper and round resident memory up by a few MiB (docs/decisions
  /// 0202), so a budget below kExactBudgetBytes never asks for them: it holds to the byte.
  HugePages huge_pages = HugePages::kAsk;
  static constexpr std::uint64_t kExactBudgetBytes = std::uint64_t{256} << 20;
};

/// Slots of the pages that sequences hold, of one group or of all, in every form; a shared page
/// counts once, with the mean fill of the sequences that hold it.
struct KvUsage {
  double filled_slots = 0;
  double allocated_slots = 0;
  double filled_bytes = 0;     ///< of slots that hold a token, all layers, K and V
  double allocated_bytes = 0;  ///< of all slots of those pages
  /// Share of the allocated bytes that holds tokens; 1 when nothing is allocated.
  double utilisation() const { return allocated_bytes > 0 ? filled_bytes / allocated_bytes : 1.0; }
  KvUsage& operator+=(const KvUsage& other);
};

class KvCache {
 public:
  /// kInvalidArgument for a budget of 0 or a layout that no kernel reads, kResourceExhausted for a
  /// budget that cannot hold one page of each group and all tables, or a system without the address
  /// space.
  static Result<std::unique_ptr<KvCache>> create(const KvCacheConfig& config);
  ~KvCache();  ///< REQUIRES: no sequence is left
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  /// From now on the cache has a PrefixTree, empty: prefixes(). Its bytes are the budget's, and
  /// validate() counts them. REQUIRES: it has none yet; a hasher of the cache's own groups. Fails
  /// as PrefixTree::create does.
  Status remember_prefixes(std::unique_ptr<LineageHasher> hasher,
                           std::int32_t remembered_evictions);
  PrefixTree* prefixes() { return prefixes_.get(); }  ///< null without one
  const PrefixTree* prefixes() const { return prefixes_.get(); }

  /// An empty sequence; null when its record finds no room.
  SequenceHandle try_create_sequence();

  const std::vector<KvLayerGroup>& groups() const { return config_.groups; }
  const KvCacheConfig& config() const { return config_; }
  KvBudget& budget() { return *budget_; }
  const KvBudget& budget() const { return *budget_; }
  /// Of the group's own form.
  PagePool& pool(LayerGroupId group) { return pools_[group.index()].own(); }
  const PagePool& pool(LayerGroupId group) const { return pools_[group.index()].own(); }
  const GroupPools& pools(LayerGroupId group) const { return pools_[group.index()]; }
  std::int32_t sequence_count() const { return sequence_count_; }

  /// Bytes that are charged when no sequence lives and no prefix is remembered.
  std::uint64_t overhead_bytes() const;

  KvUsage usage(LayerGroupId group) const;
  KvUsage usage() const;

  /// Tests every invariant above. `other_bytes` is what others hold of the budget (staging and the
  /// like), `other_pages` the references that are held beside the sequences. kCorrupt names the
  /// first broken one.
  Status validate(std::uint64_t other_bytes = 0,
                  std::span<const PageHandle* const> other_pages = {}) const;

 private:
  friend class Sequence;
  explicit KvCache(KvCacheConfig config) : config_(std::move(config)) {}
  void enlist(Sequence& sequence);
  void delist(Sequence& sequence);
  KvUsage usage(LayerGroupId group, const PagePool& pool) const;
  Status check_pool(LayerGroupId group, const PagePool& pool,
                    std::span<const PageHandle* const> other_pages) const;
  SequenceId next_id() { return SequenceId(next_id_++); }

  KvCacheConfig config_;
  std::unique_ptr<KvBudget> budget_;
  std::vector<GroupPools> pools_;         // never moved: page tables point at them
  std::unique_ptr<PrefixTree> prefixes_;  // dies before its pages' pools
  Sequence* sequences_ = nullptr;         // a list through Sequence::next_
  std::int32_t sequence_count_ = 0;
  std::int64_t next_id_ = 0;
};

}  // namespace memdecay
