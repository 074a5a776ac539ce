// GroupPools: the page pools of one layer group: one for its own form, one for each further form.
//
// Pages are written in the own form only; pages of other forms are made from those. Every pool is a
// PagePool of its own on the same budget, so bytes that one gives back another can take.
// Invariants: own() exists; no two pools have the same form; all have the same shape but for it.
// Threads: one owner. Cost: find() O(forms). Pools stay where they are when this object moves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/paged_kv.h"
#include "core/status.h"
#include "kv/kv_budget.h"
#include "kv/page_pool.h"

namespace memdecay {

class GroupPools {
 public:
  static constexpr std::size_t kMostForms = static_cast<std::size_t>(KvFormat::kInt4) + 1;

  /// Adds a pool; the first one is the own form's. Fails as PagePool::create does.
  Status add(KvBudget& budget, const KvPageLayout& layout, std::int32_t max_pages, HugePages huge);

  PagePool& own() const { return *pools_.front(); }
  /// Null where the group is not configured with this form.
  PagePool* find(KvFormat form) const;
  std::span<const std::unique_ptr<PagePool>> all() const { return pools_; }

  /// PagePool::Batch over all pools.
  class Batch {
   public:
    explicit Batch(const GroupPools& pools);

   private:
    std::array<std::optional<PagePool::Batch>, kMostForms> batches_;
  };

 private:
  std::vector<std::unique_ptr<PagePool>> pools_;
};

}  // namespace memdecay
