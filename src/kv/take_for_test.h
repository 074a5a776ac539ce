// For tests and benchmarks: takes bytes or pages that must be there, and ends the process
// otherwise.
#pragma once

#include <optional>
#include <utility>

#include "core/check.h"
#include "kv/kv_budget.h"
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

}  // namespace memdecay
