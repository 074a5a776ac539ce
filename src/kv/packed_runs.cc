#include "kv/packed_runs.h"

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace memdecay {
namespace {

bool begins_before(const PositionRun& run, Position position) {
  return run.first < position;
}

}  // namespace

PackedRuns::Range PackedRuns::range_of(const KvPageRef& page) const {
  const std::vector<PositionRun>& runs = runs_.items();
  const auto begin = std::lower_bound(runs.begin(), runs.end(), page.first_position, begins_before);
  auto end = begin;
  if (begin != runs.end() && begin->first == page.first_position)
    for (std::int32_t slots = 0; slots < page.filled && end != runs.end(); ++end)
      slots += end->tokens;
  return {static_cast<std::size_t>(begin - runs.begin()), static_cast<std::size_t>(end - begin)};
}

std::span<const PositionRun> PackedRuns::of(const KvPageRef& page) const {
  const Range range = range_of(page);
  return std::span(runs_.items()).subspan(range.begin, range.count);
}

Position PackedRuns::end_of(const KvPageRef& page) const {
  const auto runs = of(page);
  return runs.empty() ? page.first_position + page.filled : runs.back().end();
}

std::int32_t PackedRuns::slots_before(const KvPageRef& page, Position to) const {
  const auto runs = of(page);
  if (runs.empty()) return std::clamp(to - page.first_position, 0, page.filled);
  std::int32_t slots = 0;
  for (const PositionRun& run : runs) slots += std::clamp(to - run.first, 0, run.tokens);
  return slots;
}

void PackedRuns::cut(Position to) {
  std::vector<PositionRun>& runs = runs_.items();
  while (!runs.empty() && runs.back().first >= to) runs.pop_back();
  if (!runs.empty()) runs.back().tokens = std::min(runs.back().tokens, to - runs.back().first);
}

void PackedRuns::forget(const KvPageRef& page) {
  const Range range = range_of(page);
  for (PositionRun& run : std::span(runs_.items()).subspan(range.begin, range.count))
    run.tokens = 0;
}

void PackedRuns::sweep() {
  std::erase_if(runs_.items(), [](const PositionRun& run) { return run.tokens == 0; });
}

void PackedRuns::insert(std::span<const PositionRun> added) {
  if (added.empty()) return;
  std::vector<PositionRun>& runs = runs_.items();
  MEMDECAY_CHECK(runs.size() + added.size() <= runs.capacity());
  const auto place = std::lower_bound(runs.begin(), runs.end(), added.front().first, begins_before);
  runs.insert(place, added.begin(), added.end());
}

Status PackedRuns::check(std::span<const KvPageRef> pages) const {
  std::size_t known = 0;
  for (const KvPageRef& page : pages) {
    const auto runs = of(page);
    std::int32_t slots = 0;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      slots += runs[r].tokens;
      if (runs[r].tokens <= 0 || (r > 0 && runs[r].first <= runs[r - 1].end()))
        return make_status(StatusCode::kCorrupt, "the packed page at {} has no gap at {}",
                           page.first_position, runs[r].first);
    }
    known += runs.size();
    if (!runs.empty() && (runs.size() < 2 || slots != page.filled))
      return make_status(StatusCode::kCorrupt, "the page at {} fills {} slots but knows {} in {}",
                         page.first_position, page.filled, slots, runs.size());
  }
  if (known != count() || !runs_.is_paid())
    return make_status(StatusCode::kCorrupt, "{} of {} runs belong to pages, {} bytes are paid",
                       known, count(), runs_.bytes());
  return {};
}

}  // namespace memdecay
