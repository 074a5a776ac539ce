// PrefixOracle: what a PrefixTree should hold, as one plain map from (tenant, pages) to a record;
// every question is answered by looking at all of them. For tests and fuzzers, never in the
// product. It knows pages by number only; who else holds a page is asked through `held`.
// Threads: one. Cost: O(records) and more, on purpose.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/id.h"
#include "kv/random_walk.h"

namespace memdecay {

class PrefixOracle {
 public:
  static constexpr int kGroups = 2;  // the second has the window
  using Choose = RandomWalk::Choose;
  using Page = std::vector<TokenId>;
  using Path = std::vector<Page>;
  using Name = std::pair<int, Path>;  // tenant, pages from the first to this one
  struct Record {
    std::array<std::int32_t, kGroups> pages{};  // -1: none
    std::uint64_t last_use = 0;
    int pins = 0;
  };
  struct Found {
    Path whole;
    std::int32_t partial = 0;  // the most tokens that a page after `whole` shares
  };

  std::int32_t window = 0;
  std::uint64_t node_bytes = 0;
  std::array<std::uint64_t, kGroups> page_bytes{};
  std::map<int, std::uint64_t> tenant_bytes;
  std::function<bool(int group, std::int32_t page)> held;  // by a living sequence
  std::map<Name, Record> records;

  static std::int32_t tokens_in(const Path& path) {
    std::size_t tokens = 0;
    for (const Page& page : path) tokens += page.size();
    return static_cast<std::int32_t>(tokens);
  }
  static std::int32_t common(const Page& a, const Page& b) {
    std::size_t same = 0;
    while (same < std::min(a.size(), b.size()) && a[same] == b[same]) ++same;
    return static_cast<std::int32_t>(same);
  }
  static Name parent(Name name) {
    name.second.pop_back();
    return name;
  }
  bool has(const Name& name) const { return records.contains(name); }
  bool is_child(const Name& of, const Name& name) const {
    return of.first == name.first && name.second.size() == of.second.size() + 1 &&
           parent(name) == of;
  }
  bool is_leaf(const Name& name) const {
    return std::none_of(records.begin(), records.end(),
                        [&](const auto& other) { return is_child(name, other.first); });
  }

  Found find(int tenant, const Path& plan) const {
    Path deepest;
    while (deepest.size() < plan.size()) {
      Path next = deepest;
      next.push_back(plan[deepest.size()]);
      if (!has({tenant, next})) break;
      deepest = next;
    }
    Found found{deepest, 0};
    while (!found.whole.empty() && !window_is_whole(tenant, found.whole)) found.whole.pop_back();
    if (found.whole.size() == deepest.size() && deepest.size() < plan.size())
      for (const auto& [name, record] : records)
        if (is_child({tenant, deepest}, name))
          found.partial = std::max(found.partial, common(name.second.back(), plan[deepest.size()]));
    return found;
  }

  /// The most tokens that any remembered sequence shares with these, whatever the borders.
  std::int32_t equal_tokens(int tenant, const Page& tokens) const {
    std::int32_t most = 0;
    for (const auto& [name, record] : records) {
      if (name.first != tenant) continue;
      Page all;
      for (const Page& page : name.second) all.insert(all.end(), page.begin(), page.end());
      most = std::max(most, common(all, tokens));
    }
    return most;
  }

  static Page some_page(const Choose& choose) {
    constexpr std::array<std::uint32_t, 4> kSizes = {1, 2, 3, 16};
    Page page(kSizes[choose(4)]);
    for (TokenId& token : page) token = choose(8) == 0 ? 7 : 3;
    return page;
  }
  /// Often one that is remembered after `name`.
  Page some_next_page(const Choose& choose, const Name& name) const {
    if (choose(3) == 0)
      for (const auto& [other, record] : records)
        if (is_child(name, other)) return other.second.back();
    return some_page(choose);
  }
  /// Often a remembered path, perhaps cut short, and perhaps something new after it.
  Path some_path(const Choose& choose) const {
    Path path;
    if (!records.empty() && choose(3) > 0) {
      auto any = records.begin();
      std::advance(any, choose(static_cast<std::uint32_t>(records.size())));
      path = any->first.second;
      path.resize(path.size() - choose(static_cast<std::uint32_t>(path.size())));
    }
    for (std::uint32_t more = choose(4); more > 0; --more) path.push_back(some_page(choose));
    return path;
  }

  void pin(Name name) {
    for (; !name.second.empty(); name = parent(name)) ++records.at(name).pins;
  }
  void unpin(Name name) {
    for (; !name.second.empty(); name = parent(name)) unpin_one(name);
  }
  void pin_one(const Name& name) { ++records.at(name).pins; }
  void unpin_one(const Name& name) {
    Record& record = records.at(name);
    if (--record.pins == 0) record.last_use = ++now_;
  }

  std::uint64_t evict(std::uint64_t bytes, bool also_shared) {
    std::uint64_t freed = 0;
    const std::uint64_t start = now_;
    const auto idle = [&] {
      return std::any_of(records.begin(), records.end(),
                         [&](const auto& one) { return frees_a_page(one.second); });
    };
    while (freed < bytes && idle()) {
      const std::optional<Name> oldest = oldest_of([](const Name&) { return true; });
      if (!oldest || records.at(*oldest).last_use > start) break;
      if (is_cached_only(records.at(*oldest))) {
        freed += remove(*oldest);
        continue;
      }
      for (Name name = *oldest; !name.second.empty() && records.at(name).pins == 0;
           name = parent(name))
        records.at(name).last_use = ++now_;
    }
    if (!also_shared) return freed;
    std::set<Name> doomed;
    for (const auto& [name, record] : records)
      if (record.pins == 0 && is_in_the_way(name)) doomed.insert(name);
    while (freed < bytes) {
      const auto next = oldest_of([&](const Name& name) { return doomed.contains(name); });
      if (!next) break;
      freed += remove(*next);
    }
    return freed;
  }

  std::uint64_t forget(const Name& top) {
    std::uint64_t freed = 0;
    for (bool again = has(top); again;) {
      again = false;
      for (const auto& [name, record] : records) {
        const bool below = name.first == top.first && name.second.size() >= top.second.size() &&
                           std::equal(top.second.begin(), top.second.end(), name.second.begin());
        if (!below || record.pins > 0 || !is_leaf(name)) continue;
        freed += remove(Name(name));
        again = true;
        break;
      }
    }
    return freed;
  }

 private:
  bool window_is_whole(int tenant, const Path& path) const {
    const std::int32_t seen_from = std::max(0, tokens_in(path) - window + 1);
    Path until;
    for (const Page& page : path) {
      until.push_back(page);
      const bool seen = tokens_in(until) > seen_from;
      if (window > 0 && seen && records.at({tenant, until}).pages[1] < 0) return false;
    }
    return true;
  }
  bool is_cached_only(const Record& record) const {
    for (int g = 0; g < kGroups; ++g)
      if (record.pages[static_cast<std::size_t>(g)] >= 0 &&
          held(g, record.pages[static_cast<std::size_t>(g)]))
        return false;
    return true;
  }
  bool frees_a_page(const Record& record) const {
    for (int g = 0; g < kGroups; ++g)
      if (record.pages[static_cast<std::size_t>(g)] >= 0 &&
          !held(g, record.pages[static_cast<std::size_t>(g)]))
        return true;
    return false;
  }
  /// Whether it, or an unpinned page on the way up, could give bytes back.
  bool is_in_the_way(Name name) const {
    for (; !name.second.empty() && records.at(name).pins == 0; name = parent(name))
      if (frees_a_page(records.at(name))) return true;
    return false;
  }
  template <typename Among>
  std::optional<Name> oldest_of(Among among) const {
    std::optional<Name> oldest;
    std::uint64_t last_use = std::numeric_limits<std::uint64_t>::max();
    for (const auto& [name, record] : records)
      if (record.pins == 0 && record.last_use < last_use && among(name)) {
        oldest = name;
        last_use = record.last_use;
      }
    return oldest;
  }
  std::uint64_t remove(const Name& name) {
    std::uint64_t freed = node_bytes;
    const Record& record = records.at(name);
    for (std::size_t g = 0; g < kGroups; ++g)
      if (record.pages[g] >= 0 && !held(static_cast<int>(g), record.pages[g]))
        freed += page_bytes[g];
    const int tenant = name.first;
    records.erase(Name(name));
    const bool gone = std::none_of(records.begin(), records.end(),
                                   [&](const auto& other) { return other.first.first == tenant; });
    return freed + (gone ? tenant_bytes.at(tenant) : 0);
  }

  std::uint64_t now_ = 0;
};

}  // namespace memdecay
