// PrefixWorld: a PrefixTree with real pools, a budget, and sequences that hold some of the pages;
// what the model-based test, the unit tests and the fuzzer stand on. Never in the product.
//
// Two layer groups of 16-token pages (4 KiB and 8 KiB), the second with a window. Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "kv/prefix/prefix_tree.h"

namespace memdecay {

/// Gives every page the same key, as if SHA-256 had failed: nothing may depend on it.
class OneKeyForAll final : public LineageHasher {
 public:
  using LineageHasher::LineageHasher;
  LineageKey root(const PrefixScope&) const override { return {}; }
  LineageKey child(const LineageKey&, std::span<const TokenId>) const override { return {}; }
};

/// Pages of tokens as the arrays of a plan.
struct FlatPath {
  explicit FlatPath(const std::vector<std::vector<TokenId>>& path) {
    for (const std::vector<TokenId>& page : path) {
      tokens.insert(tokens.end(), page.begin(), page.end());
      cuts.push_back(static_cast<std::int32_t>(page.size()));
    }
  }
  PrefixPlan plan() const { return {tokens, cuts}; }
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> cuts;
};

class PrefixWorld {
 public:
  struct Shape {
    std::int32_t window = 0;  ///< of the second layer group
    std::uint64_t budget_bytes = 1 << 20;
    bool one_key = false;
    std::int32_t pool_pages = 64;
    std::int32_t remembered_evictions = 16;
  };
  struct Held {
    int group;
    PageHandle page;
  };
  using Sequence = std::vector<Held>;
  static constexpr std::size_t kGroups = 2;

  explicit PrefixWorld(const Shape& shape)
      : budget_(std::move(KvBudget::create(shape.budget_bytes)).value()) {
    LineageModel model{"model", {}};
    for (int g = 0; g < 2; ++g) {
      const KvPageLayout layout{.layers = 1 + g, .kv_heads = 1, .head_dim = 64, .page_tokens = 16};
      model.groups.push_back({layout, g == 0 ? 0 : shape.window});
      pools_[index(g)] = std::move(PagePool::create(*budget_, layout, shape.pool_pages)).value();
    }
    std::unique_ptr<LineageHasher> hasher;
    if (shape.one_key)
      hasher = std::make_unique<OneKeyForAll>(std::move(model));
    else
      hasher = std::make_unique<LineageHasher>(std::move(model));
    empty_bytes_ = budget_->current_bytes();
    tree_ = std::move(PrefixTree::create(*budget_, {pools_[0].get(), pools_[1].get()},
                                         std::move(hasher), shape.remembered_evictions))
                .value();
  }

  static std::size_t index(int g) { return static_cast<std::size_t>(g); }
  PrefixTree& tree() { return *tree_; }
  const PrefixTree& tree() const { return *tree_; }
  KvBudget& budget() { return *budget_; }
  PagePool& pool(int group) { return *pools_[index(group)]; }
  std::vector<Sequence>& sequences() { return sequences_; }

  bool held(int group, std::int32_t page) const {
    for (const Sequence& sequence : sequences_)
      for (const Held& one : sequence)
        if (one.group == group && one.page.id().value() == page) return true;
    return false;
  }

  /// Everything that should hold between operations; empty when it does.
  std::string check() const {
    Status status = tree_->check();
    std::uint64_t bytes = tree_->counters().record_bytes;
    for (int g = 0; g < 2 && status.ok(); ++g) {
      const PagePool& pool = *pools_[index(g)];
      std::vector<std::int32_t> named(static_cast<std::size_t>(pool.ever_used_pages()));
      tree_->count_references(LayerGroupId(g), named);
      for (const Sequence& sequence : sequences_)
        for (const Held& one : sequence)
          if (one.group == g) ++named[one.page.id().index()];
      status = pool.check(named);
      bytes += pool.counters().page_bytes + pool.counters().table_bytes;
    }
    if (!status.ok()) return status.message();
    return bytes == budget_->current_bytes() ? ""
                                             : "the budget's bytes are not those of pools and tree";
  }
  /// Ends tree and sequences; nothing may be left.
  std::string finish() {
    sequences_.clear();
    tree_.reset();
    return budget_->current_bytes() == empty_bytes_ ? "" : "bytes are left after the tree died";
  }

 private:
  std::unique_ptr<KvBudget> budget_;
  std::array<std::unique_ptr<PagePool>, kGroups> pools_;
  std::unique_ptr<PrefixTree> tree_;
  std::vector<Sequence> sequences_;
  std::uint64_t empty_bytes_ = 0;
};

}  // namespace memdecay
