#include "eval/metrics/region_fates.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace memdecay {
namespace {

std::string name_of(Region region) {
  return std::string(region_name(region));
}

}  // namespace

Position tokens_within(const TokenRange& span, std::span<const PositionRun> runs) {
  Position tokens = 0;
  auto run = std::lower_bound(
      runs.begin(), runs.end(), span.begin,
      [](const PositionRun& one, Position position) { return one.end() <= position; });
  for (; run != runs.end() && run->first < span.end; ++run)
    tokens += std::min(span.end, run->end()) - std::max(span.begin, run->first);
  return tokens;
}

std::map<std::string, double> kept_shares(std::span<const RegionSpan> regions,
                                          std::span<const PositionRun> held) {
  std::array<Position, kRegionCount> all = {};
  std::array<Position, kRegionCount> there = {};
  for (const RegionSpan& span : regions) {
    all[region_index(span.region)] += span.tokens.size();
    there[region_index(span.region)] += tokens_within(span.tokens, held);
  }
  std::map<std::string, double> kept;
  for (const Region region : kRegions) {
    const std::size_t i = region_index(region);
    if (all[i] > 0) kept[name_of(region)] = static_cast<double>(there[i]) / all[i];
  }
  return kept;
}

DropAges::DropAges(std::span<const RegionSpan> regions)
    : regions_(regions),
      dropped_at_(regions.empty() ? 0 : static_cast<std::size_t>(regions.back().tokens.end)) {}

void DropAges::look(std::span<const PositionRun> held, Position size) {
  const auto note = [&](Position begin, Position end) {
    for (Position i = begin; i < end; ++i) {
      Position& dropped_at = dropped_at_[static_cast<std::size_t>(i)];
      if (dropped_at == 0) dropped_at = size;
    }
  };
  MEMDECAY_CHECK(static_cast<std::size_t>(size) <= dropped_at_.size());
  Position begin = 0;
  for (const PositionRun& run : held) {
    note(begin, run.first);
    begin = run.end();
  }
  note(begin, size);
}

std::map<std::string, std::vector<LifeCount>> DropAges::lives(Position size) const {
  std::array<std::map<std::int64_t, LifeCount>, kRegionCount> by_age;
  for (const RegionSpan& span : regions_) {
    for (Position i = span.tokens.begin; i < std::min(span.tokens.end, size); ++i) {
      const Position dropped_at = dropped_at_[static_cast<std::size_t>(i)];
      const std::int64_t age = (dropped_at > 0 ? dropped_at : size) - i;
      const std::int64_t steps = (age + kAgeStep - 1) / kAgeStep * kAgeStep;
      LifeCount& count = by_age[region_index(span.region)][steps];
      count.steps = steps;
      ++(dropped_at > 0 ? count.ended : count.censored);
    }
  }
  std::map<std::string, std::vector<LifeCount>> lives;
  for (const Region region : kRegions) {
    for (const auto& [steps, count] : by_age[region_index(region)])
      lives[name_of(region)].push_back(count);
  }
  return lives;
}

}  // namespace memdecay
