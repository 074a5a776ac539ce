#include "kv/group_pools.h"

#include <utility>

#include "core/check.h"

namespace memdecay {

Status GroupPools::add(KvBudget& budget, const KvPageLayout& layout, std::int32_t max_pages,
                       HugePages huge) {
  MEMDECAY_CHECK(find(layout.format) == nullptr);
  MEMDECAY_ASSIGN_OR_RETURN(auto pool, PagePool::create(budget, layout, max_pages, huge));
  pools_.push_back(std::move(pool));
  return {};
}

PagePool* GroupPools::find(KvFormat form) const {
  for (const auto& pool : pools_)
    if (pool->layout().format == form) return pool.get();
  return nullptr;
}

GroupPools::Batch::Batch(const GroupPools& pools) {
  for (std::size_t i = 0; i < pools.all().size(); ++i) batches_[i].emplace(*pools.all()[i]);
}

}  // namespace memdecay
