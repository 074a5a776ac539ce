#include "engine/memory/recompute_start.h"

#include <algorithm>
#include <numeric>

namespace memdecay {
namespace {

/// History takes one part in so many of the budget when it is computed again. Then the rest has to
/// fill up before it is dropped the next time, so over a session about as many tokens are computed
/// again as come new.
constexpr std::uint64_t kRefillParts = 2;

/// Bytes of what is held before `start`, and of [start, end) in pages as they are written.
std::uint64_t bytes_from(const SessionMemory& memory, Position start, Position end) {
  const SessionMemoryOptions& options = memory.options();
  std::uint64_t bytes = 0;
  for (const SessionMemory::Page& page : memory.pages())
    if (page.first_position < start) bytes += memory.meta(page).bytes;
  const auto page_tokens = static_cast<std::uint64_t>(options.page_tokens);
  const auto tokens = static_cast<std::uint64_t>(end - start);
  return bytes + options.forms[form_index(PageForm::kF16)].bytes *
                     ((tokens + page_tokens - 1) / page_tokens + memory.cuts(start, end).size());
}

}  // namespace

std::uint64_t refill_bytes(const SessionMemory& memory, const KvBudget& budget) {
  const std::uint64_t room = memory.options().budget_bytes / kRefillParts;
  if (budget.limit_bytes() == KvBudget::kUnlimited) return room;
  const std::uint64_t others =
      budget.current_bytes() - std::min(budget.current_bytes(), memory.tracked_bytes());
  const std::uint64_t all = budget.limit_bytes() / kRefillParts;
  return std::min(room, all - std::min(all, others));
}

Position recompute_start(const SessionMemory& memory, Position size, Position earliest_cut,
                         std::size_t coming, std::uint64_t room) {
  if (!memory.options().evicts || !memory.recomputes() || size == 0) return size;
  const auto end = size + static_cast<Position>(coming);
  Position low = 0;
  for (Position high = size; low < high;) {
    const Position middle = std::midpoint(low, high);
    if (bytes_from(memory, middle, end) <= room) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  Position held = 0;
  for (const SessionMemory::Page& page : memory.pages()) {
    if (page.first_position >= low) {
      held += page.filled;
    } else if (page.first_position + page.filled > low) {
      low = page.first_position + page.filled;
    }
  }
  const bool complete = held >= size - low;
  return complete || low < earliest_cut ? size : low;
}

}  // namespace memdecay
