// PolicyOracle: the naive truth about plans, for tests. It keeps plain lists, sorts everything anew
// for every plan, and gets scores from a function of the caller. O(n^2) and proud of it.
// It knows drops only; with the ladder only the invariants are tested. Never in the product.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "policy/decay_math.h"
#include "policy/eviction_policy.h"
#include "policy/page_book.h"

namespace memdecay {

/// Decay with which the initial scores survive (never, 4000, 2000, 1000, 300) steps.
inline std::array<double, kRegionCount> short_region_decay() {
  constexpr std::array<double, kRegionCount> kSurvivalSteps = {0, 4000, 2000, 1000, 300};
  std::array<double, kRegionCount> decay = {};
  for (std::size_t r = 1; r < kRegionCount; ++r)
    decay[r] = decay_for_survival(kInitialScores[r], kSurvivalSteps[r]);
  return decay;
}

/// Page `id` of a row of pages that are alike, each behind the one before.
inline PageMeta page_for_test(int id, Region region, std::int64_t born, std::int32_t tokens,
                              std::uint64_t bytes) {
  PageMeta meta;
  meta.id = TrackedPageId(id);
  meta.region = region;
  meta.tokens = tokens;
  meta.position = tokens * id;
  meta.born_step = born;
  meta.bytes = bytes;
  return meta;
}

class PolicyOracle {
 public:
  /// The score of a page if it counted as of that region.
  using Score = std::function<double(const PageMeta&, Region)>;
  /// The region that a page counts as.
  using RegionOf = std::function<Region(const PageMeta&)>;

  explicit PolicyOracle(
      const ProtectionOptions& options,
      RegionOf region_of = [](const PageMeta& meta) { return meta.region; })
      : options_(options), region_of_(std::move(region_of)) {}

  std::map<std::int32_t, PageMeta>& pages() { return pages_; }
  void track(const PageMeta& meta) {
    const bool is_new = !pages_.contains(meta.id.value());
    if (!is_new) {
      const PageMeta& before = pages_.at(meta.id.value());
      if (before.item != kNoItem) totals_[before.item] -= before.tokens;
    }
    pages_[meta.id.value()] = meta;
    if (meta.item != kNoItem) totals_[meta.item] += meta.tokens;
    forget_ended_items();
  }
  void release(TrackedPageId page) {
    pages_.erase(page.value());
    forget_ended_items();
  }

  void repack(std::span<const TrackedPageId> before, std::span<const PackedPage> after) {
    for (const TrackedPageId page : before) {
      const PageMeta& meta = pages_.at(page.value());
      if (meta.item != kNoItem) totals_[meta.item] -= meta.tokens;
      pages_.erase(page.value());
    }
    for (const PackedPage& page : after) track(page.meta);
    forget_ended_items();
  }

  bool newest(const PageMeta& meta) const {
    const auto later = std::count_if(pages_.begin(), pages_.end(), [&](const auto& entry) {
      return entry.second.position > meta.position;
    });
    return later < options_.newest_pages;
  }
  bool shielded(const PageMeta& meta) const {
    return !meta.sealed || meta.position < options_.sink_tokens || meta.pinned || newest(meta);
  }
  static bool core(const PageMeta& meta) {
    return meta.tool_core && meta.tool_round != kNoToolRound;
  }
  std::vector<PageMeta> round(std::int32_t round) const {
    std::vector<PageMeta> members;
    for (const auto& [id, meta] : pages_) {
      if (meta.tool_round == round) members.push_back(meta);
    }
    return members;
  }
  std::int64_t floor_of(std::int32_t item) const {
    const auto total = static_cast<double>(totals_.at(item));
    return static_cast<std::int64_t>(std::ceil(options_.floor_share * total));
  }
  std::int64_t kept(std::int32_t item, const std::set<std::int32_t>& gone) const {
    std::int64_t tokens = 0;
    for (const auto& [id, meta] : pages_) {
      if (meta.item == item && !gone.contains(id)) tokens += meta.tokens;
    }
    return tokens;
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [id, meta] : pages_) sum += meta.bytes;
    return sum;
  }

  /// Which pages a pressed plan without the ladder drops.
  std::set<std::int32_t> drops(std::uint64_t budget, bool all, const Score& score) const {
    std::set<std::int32_t> gone;
    std::uint64_t left = bytes();
    for (const bool live_floors : {true, false}) {
      if (left <= budget) return gone;
      for (const auto& phase : phases(score)) {
        for (const Unit& unit : phase) {
          if (!all && left <= budget) return gone;
          std::set<std::int32_t> after = gone;
          for (const PageMeta& meta : unit.pages) after.insert(meta.id.value());
          if (!floors_hold(unit, after, live_floors)) continue;
          for (const PageMeta& meta : unit.pages) {
            if (gone.insert(meta.id.value()).second) left -= meta.bytes;
          }
        }
      }
    }
    for (const Unit& mate : mates(score)) {
      if (left <= budget) break;
      gone.insert(mate.pages[0].id.value());
      left -= mate.pages[0].bytes;
    }
    return gone;
  }
  /// A round that stays because of a page that is protected.
  bool is_held(std::int32_t round) const {
    const auto members = this->round(round);
    return std::any_of(members.begin(), members.end(),
                       [&](const PageMeta& page) { return shielded(page); });
  }
  bool is_young(std::int32_t round) const {
    std::int32_t latest = -1;
    for (const auto& [id, meta] : pages_) latest = std::max(latest, meta.tool_round);
    return round != kNoToolRound && latest - round < options_.lag_rounds;
  }
  /// Pages that may go before a live result's floor is touched.
  bool goes_before_live_floors(const PageMeta& meta) const {
    if (shielded(meta) || is_young(meta.tool_round)) return false;
    if (!core(meta)) return meta.item == kNoItem || meta.tool_round != kNoToolRound;
    return !is_held(meta.tool_round);
  }

 private:
  struct Unit {
    double score;
    Position first;
    std::vector<PageMeta> pages;
  };

  void forget_ended_items() {
    for (auto& [item, total] : totals_) {
      if (kept(item, {}) == 0) total = 0;
    }
  }
  bool floors_hold(const Unit& unit, const std::set<std::int32_t>& after, bool live_floors) const {
    for (const PageMeta& meta : unit.pages) {
      const bool in_round = meta.tool_round != kNoToolRound;
      if (in_round && !(live_floors && is_young(meta.tool_round))) continue;
      if (meta.item != kNoItem && kept(meta.item, after) < floor_of(meta.item)) return false;
    }
    return true;
  }
  Unit round_unit(const std::vector<PageMeta>& members, const Score& score) const {
    Region region = Region::kOrdinary;
    Unit unit{0, 0, members};
    std::int64_t tokens = 0;
    for (const PageMeta& meta : members) {
      if (core(meta)) region = stronger(region, region_of_(meta));
    }
    unit.first = std::numeric_limits<Position>::max();
    for (const PageMeta& meta : members) {
      if (!core(meta)) continue;
      unit.score += score(meta, region) * meta.tokens;
      tokens += meta.tokens;
      unit.first = std::min(unit.first, meta.position);
    }
    unit.score /= static_cast<double>(tokens);
    return unit;
  }
  std::vector<std::vector<Unit>> phases(const Score& score) const {
    std::vector<Unit> old = units(false, score);
    std::vector<Unit> young = units(true, score);
    if (std::isinf(options_.lag_bonus)) return {old, young};
    for (Unit& unit : young) {
      unit.score += options_.lag_bonus;
      old.push_back(unit);
    }
    sort(old);
    return {old};
  }
  static void sort(std::vector<Unit>& units) {
    std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
      return a.score != b.score ? a.score < b.score : a.first < b.first;
    });
  }
  std::vector<Unit> units(bool young, const Score& score) const {
    std::vector<Unit> all;
    std::set<std::int32_t> seen;
    for (const auto& [id, meta] : pages_) {
      if (is_young(meta.tool_round) != young) continue;
      if (!core(meta)) {
        if (!shielded(meta)) all.push_back({score(meta, region_of_(meta)), meta.position, {meta}});
        continue;
      }
      if (!seen.insert(meta.tool_round).second) continue;
      if (!is_held(meta.tool_round)) all.push_back(round_unit(round(meta.tool_round), score));
    }
    sort(all);
    return all;
  }

  /// Single pages that stay only for the sake of their round.
  std::vector<Unit> mates(const Score& score) const {
    std::vector<Unit> all;
    for (const auto& [id, meta] : pages_) {
      if (core(meta) && !shielded(meta) && is_held(meta.tool_round))
        all.push_back({score(meta, region_of_(meta)), meta.position, {meta}});
    }
    sort(all);
    return all;
  }

  ProtectionOptions options_;
  RegionOf region_of_;
  std::map<std::int32_t, PageMeta> pages_;
  std::map<std::int32_t, std::int64_t> totals_;
};

}  // namespace memdecay
