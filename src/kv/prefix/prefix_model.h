// PrefixModel: drives a PrefixTree and a PrefixOracle through the same random operations, with
// pages of a real pool and sequences that hold some of them; for the model-based test and the
// fuzzer, never in the product. After each operation step() compares the two and runs check().
//
// Two tenants, few different tokens, short pages: prefixes meet all the time. Threads: one.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kv/prefix/prefix_oracle.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/prefix/prefix_world.h"
#include "kv/random_walk.h"

namespace memdecay {

class PrefixModel final : public RandomWalk {
 public:
  struct Counts {
    std::uint64_t whole_hits = 0, partial_hits = 0, present = 0, refused = 0;
    std::uint64_t evicted = 0, forgotten = 0;
    std::size_t most_pages = 0;
  };

  explicit PrefixModel(const PrefixWorld::Shape& shape) : world_(shape), tree_(world_.tree()) {
    oracle_.window = shape.window;
    oracle_.node_bytes = tree_.node_bytes();
    oracle_.page_bytes = {world_.pool(0).stride_bytes(), world_.pool(1).stride_bytes()};
    oracle_.held = [this](int group, std::int32_t page) { return world_.held(group, page); };
  }

  std::string finish() override {
    pins_.clear();
    return world_.finish();
  }
  const Counts& counts() const { return counts_; }

 private:
  using Name = PrefixOracle::Name;
  using Path = PrefixOracle::Path;
  struct OpenPin {
    PrefixPin pin;
    Name tip;
    std::optional<Name> partial;
  };
  static constexpr std::array<PrefixScope, 2> kScopes = {PrefixScope{"", ""}, {"tenant", ""}};
  static std::size_t index(int g) { return static_cast<std::size_t>(g); }

  std::string perform(const Choose& choose) override {
    const std::uint32_t operation = choose(32);
    if (operation < 8 && pins_.size() < 4) return look_up(choose);
    if (operation < 20 && !pins_.empty()) return insert(choose, pins_[choose(count(pins_))]);
    if (operation < 24 && !pins_.empty()) return let_go(choose(count(pins_)));
    if (operation < 26 && !pins_.empty()) return adopt(choose, pins_[choose(count(pins_))]);
    if (operation < 29 && !world_.sequences().empty())
      return close_sequence(choose(count(world_.sequences())));
    if (operation < 31 || pins_.empty()) return evict(choose);
    return forget(choose(count(pins_)));
  }
  template <typename T>
  static std::uint32_t count(const std::vector<T>& all) {
    return static_cast<std::uint32_t>(all.size());
  }

  std::string look_up(const Choose& choose) {
    done_ = "lookup";
    const int tenant = static_cast<int>(choose(2));
    const Path path = oracle_.some_path(choose);
    const FlatPath flat(path);
    const PrefixScope& scope = kScopes[index(tenant)];
    OpenPin open{tree_.lookup_and_pin(scope, flat.plan()), {tenant, {}}, std::nullopt};
    const PrefixOracle::Found found = oracle_.find(tenant, path);
    const auto difference =
        tree_.find_difference(scope, flat.plan(), open.pin, PrefixDifference::Audience::kTenant);
    open.tip.second = found.whole;
    oracle_.pin(open.tip);
    if (const std::string trouble = compare_match(open, path, found); !trouble.empty())
      return trouble;
    if (difference.equal_tokens != oracle_.equal_tokens(tenant, flat.tokens))
      return fmt::format("{} tokens are said to be equal", difference.equal_tokens);
    counts_.whole_hits += found.whole.empty() ? 0U : 1U;
    counts_.partial_hits += open.partial ? 1U : 0U;
    pins_.push_back(std::move(open));
    return {};
  }

  std::string compare_match(OpenPin& open, const Path& path, const PrefixOracle::Found& found) {
    const std::vector<PrefixPage> pages = open.pin.pages();
    if (pages.size() != found.whole.size())
      return fmt::format("{} pages matched instead of {}", pages.size(), found.whole.size());
    Name name{open.tip.first, {}};
    for (std::size_t i = 0; i < pages.size(); ++i) {
      name.second.push_back(found.whole[i]);
      if (!same_page(pages[i], name)) return fmt::format("page {} is another one", i);
    }
    if (open.pin.matched_tokens() != PrefixOracle::tokens_in(found.whole)) return "wrong count";
    const std::int32_t partial = open.pin.partial_tokens();
    // Where a group lacks the page, it may be passed over.
    if (partial == 0) return found.partial > 0 && oracle_.window == 0 ? "no partial page" : "";
    const PrefixPage page = open.pin.partial_page();
    name.second.emplace_back(page.tokens.begin(), page.tokens.end());
    if (partial != found.partial || !oracle_.has(name) || !same_page(page, name) ||
        PrefixOracle::common(name.second.back(), path[pages.size()]) != partial)
      return fmt::format("{} partial tokens instead of {}", partial, found.partial);
    for (const PageHandle& one : page.pages)
      if (!one.has_page()) return "the partial page lacks a layer group";
    oracle_.pin_one(name);
    open.partial = name;
    return {};
  }
  bool same_page(const PrefixPage& page, const Name& name) const {
    for (std::size_t g = 0; g < 2; ++g) {
      const PageHandle& one = page.pages[g];
      if ((one.has_page() ? one.id().value() : -1) != oracle_.records.at(name).pages[g])
        return false;
    }
    return PrefixOracle::Page(page.tokens.begin(), page.tokens.end()) == name.second.back();
  }

  std::string insert(const Choose& choose, OpenPin& open) {
    done_ = "insert";
    const PrefixOracle::Page tokens = oracle_.some_next_page(choose, open.tip);
    std::array<PageHandle, 2> pages;
    PrefixWorld::Sequence sequence;
    for (int g = 0; g < 2; ++g) {
      if (g == 1 && oracle_.window > 0 && choose(3) == 0) continue;
      auto page = world_.pool(g).try_allocate();
      if (!page) return {};  // the budget is full; evict() will come
      pages[index(g)] = *std::move(page);
      if (choose(3) == 0) sequence.push_back({g, pages[index(g)].share()});
    }
    std::array<std::int32_t, 2> ids{};
    for (std::size_t g = 0; g < 2; ++g) ids[g] = pages[g].has_page() ? pages[g].id().value() : -1;
    Name name = open.tip;
    name.second.push_back(tokens);
    const std::uint64_t before = tree_.counters().record_bytes;
    const auto outcome =
        tree_.insert(kScopes[index(name.first)], open.pin, tokens, pages, PageLineage::kExact);
    world_.sequences().push_back(std::move(sequence));
    if (outcome == PrefixTree::Insertion::kNoRoom) {
      ++counts_.refused;
      return oracle_.has(name) || world_.budget().free_bytes() >= 4096 ? "refused without need"
                                                                       : "";
    }
    if (oracle_.has(name) != (outcome == PrefixTree::Insertion::kPresent)) return "wrong outcome";
    counts_.present += outcome == PrefixTree::Insertion::kPresent ? 1U : 0U;
    const bool first_of_tenant =
        std::none_of(oracle_.records.begin(), oracle_.records.end(),
                     [&](const auto& other) { return other.first.first == name.first; });
    if (first_of_tenant)
      oracle_.tenant_bytes[name.first] =
          tree_.counters().record_bytes - before - oracle_.node_bytes;
    auto [at, added] = oracle_.records.try_emplace(name, PrefixOracle::Record{ids, 0, 0});
    if (!added && at->second.pages[1] < 0) at->second.pages[1] = ids[1];
    oracle_.pin_one(name);
    if (open.partial) oracle_.unpin_one(*std::exchange(open.partial, std::nullopt));
    open.tip = name;
    return {};
  }

  std::string let_go(std::uint32_t which) {
    done_ = "release";
    pins_[which].pin.release();
    if (pins_[which].partial) oracle_.unpin_one(*pins_[which].partial);
    oracle_.unpin(pins_[which].tip);
    pins_.erase(pins_.begin() + which);
    return {};
  }

  std::string adopt(const Choose& choose, OpenPin& open) {
    done_ = "adopt";
    PrefixWorld::Sequence sequence;
    for (const PrefixPage& page : open.pin.pages())
      for (int g = 0; g < 2; ++g)
        if (page.pages[index(g)].has_page() && choose(4) > 0)
          sequence.push_back({g, page.pages[index(g)].share()});
    world_.sequences().push_back(std::move(sequence));
    return {};
  }

  std::string close_sequence(std::uint32_t which) {
    done_ = "close";
    world_.sequences().erase(world_.sequences().begin() + which);
    return {};
  }

  std::string evict(const Choose& choose) {
    done_ = "evict";
    constexpr std::array<std::uint64_t, 4> kBytes = {1, 9000, 40000, ~std::uint64_t{0}};
    const std::uint64_t bytes = kBytes[choose(20) == 0 ? 3 : choose(3)];
    const bool also_shared = choose(4) == 0;
    const std::size_t records = oracle_.records.size();
    const std::uint64_t before = world_.budget().current_bytes();
    const std::uint64_t wanted = oracle_.evict(bytes, also_shared);
    const std::uint64_t freed = tree_.evict(
        bytes, also_shared ? PrefixTree::Victims::kAlsoShared : PrefixTree::Victims::kCachedOnly);
    counts_.evicted += records - oracle_.records.size();
    return freed == wanted && before - world_.budget().current_bytes() == freed
               ? ""
               : fmt::format("{} bytes freed, {} said, {} expected",
                             before - world_.budget().current_bytes(), freed, wanted);
  }

  std::string forget(std::uint32_t which) {
    const Name name = pins_[which].tip;
    if (name.second.empty()) return let_go(which);
    world_.sequences().emplace_back();
    world_.sequences().back().push_back({0, pins_[which].pin.pages().back().pages[0].share()});
    let_go(which);
    done_ = "forget";
    const std::uint64_t freed = tree_.forget_page(world_.sequences().back().front().page);
    const std::uint64_t wanted = oracle_.forget(name);
    counts_.forgotten += wanted > 0 ? 1U : 0U;
    return freed == wanted ? "" : fmt::format("{} bytes freed, {} expected", freed, wanted);
  }

  std::string compare() override {
    counts_.most_pages = std::max(counts_.most_pages, oracle_.records.size());
    const std::string trouble = world_.check();
    const auto nodes = static_cast<std::size_t>(tree_.counters().nodes);
    if (!trouble.empty() || nodes == oracle_.records.size()) return trouble;
    return fmt::format("{} pages instead of {}", nodes, oracle_.records.size());
  }

  PrefixWorld world_;
  PrefixTree& tree_;
  PrefixOracle oracle_;
  std::vector<OpenPin> pins_;
  Counts counts_;
};

}  // namespace memdecay
