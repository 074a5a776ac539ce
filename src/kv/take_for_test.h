// For tests and benchmarks: takes bytes or pages that must be there, and ends the process
// otherwise; and what an append would take.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "core/check.h"
#include "kv/kv_budget.h"
#include "kv/kv_cache.h"
#include "kv/page_pool.h"

namespace memdecay {

inline BudgetReservation take_bytes(KvBudget& budget, std::uint64_t bytes) {
  auto reservation = budget.try_reserve(bytes);
  if (!reservation) check_failed(__FILE__, __LINE__, "room in the budget");
  return *std::move(reservation);
}

inline PageHandle take_page(PagePool& pool) {
  auto page = pool.try_allocate();
  if (!page) check_failed(__FILE__, __LINE__, "a free page");
  return *std::move(page);
}

/// A page that the sequence holds, and another reference to it.
inline const PageHandle& page_at(const Sequence& sequence, LayerGroupId group, Position first) {
  const PageTable& table = sequence.table(group);
  return table.pages()[*table.find(first)];
}
inline PageHandle share_page(const Sequence& sequence, LayerGroupId group, Position first) {
  return page_at(sequence, group, first).share();
}

/// Bytes that try_append(tokens, cuts) would take from the budget now.
inline std::uint64_t bytes_to_append(const Sequence& sequence, const KvCache& cache,
                                     std::int32_t tokens, std::span<const Position> cuts = {}) {
  std::uint64_t bytes = 0;
  for (std::size_t g = 0; g < cache.groups().size(); ++g) {
    const PageTable& table = sequence.table(LayerGroupId(static_cast<std::int32_t>(g)));
    bytes += table.plan_append(sequence.size(), tokens, cuts).bytes;
  }
  return bytes;
}

}  // namespace memdecay
