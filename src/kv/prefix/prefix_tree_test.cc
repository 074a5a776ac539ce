// Laws of prefix sharing, each a class of fault that other engines' users reported; what is random
// is in tests/model_based/prefix_model_test.cc.
#include "kv/prefix/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/prefix/prefix_world.h"
#include "kv/take_for_test.h"

namespace memdecay {
namespace {

using Tokens = std::vector<TokenId>;
using Audience = PrefixDifference::Audience;
using Cause = PrefixDifference::Cause;
constexpr PrefixScope kAlice = {"alice", ""};
constexpr PrefixScope kBob = {"bob", ""};
constexpr std::size_t kPage = 16;
constexpr PrefixWorld::Shape kShape;

Tokens run(TokenId first, int count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// Pages of 16, the rest in the last: cuts without regions.
FlatPath cut(const Tokens& tokens) {
  std::vector<Tokens> pages;
  for (std::size_t at = 0; at < tokens.size(); at += kPage)
    pages.emplace_back(
        tokens.begin() + static_cast<std::ptrdiff_t>(at),
        tokens.begin() + static_cast<std::ptrdiff_t>(std::min(at + kPage, tokens.size())));
  return FlatPath(pages);
}

/// An engine whose "forward pass" writes into each slot a number that follows from the tenant and
/// all tokens up to it, so that a wrong page shows.
class Engine : public PrefixWorld {
 public:
  using PrefixWorld::PrefixWorld;

  struct Answer {
    std::vector<std::uint64_t> slots;  // what attention would read
    Position computed = 0;
  };

  /// Runs a prompt: takes what is remembered, computes the rest, remembers all of it.
  Answer serve(const PrefixScope& scope, const FlatPath& path, bool remember = true) {
    PrefixPin pin = tree().lookup_and_pin(scope, path.plan());
    std::vector<std::array<PageHandle, 2>> pages = take(pin);
    Answer answer;
    Position begin = pin.matched_tokens();
    const std::size_t found = pages.size();
    Position known = begin + pin.partial_tokens();
    for (std::size_t p = found; p < path.cuts.size(); ++p) {
      std::array<PageHandle, 2>& page =
          pages.emplace_back(std::array{take_page(pool(0)), take_page(pool(1))});
      if (p == found && pin.partial_tokens() > 0)
        for (std::size_t g = 0; g < 2; ++g)
          std::memcpy(page[g].base(), pin.partial_page().pages[g].base(),
                      sizeof(std::uint64_t) * static_cast<std::size_t>(pin.partial_tokens()));
      for (std::int32_t s = 0; s < path.cuts[p]; ++s)
        if (begin + s >= known) compute(scope, path.tokens, begin + s, page, s, answer);
      begin += path.cuts[p];
    }
    read(path, pages, answer);
    for (std::size_t p = found; remember && p < pages.size(); ++p) {
      const auto tokens = std::span(path.tokens)
                              .subspan(static_cast<std::size_t>(pin.matched_tokens()),
                                       static_cast<std::size_t>(path.cuts[p]));
      static_cast<void>(tree().insert(scope, pin, tokens, pages[p], PageLineage::kExact));
    }
    return answer;
  }
  /// A sequence changes the last page of a remembered path.
  std::uint64_t forget(const PrefixScope& scope, const FlatPath& path) {
    const PageHandle last =
        tree().lookup_and_pin(scope, path.plan()).pages().back().pages[0].share();
    return tree().forget_page(last);
  }

 private:
  static std::vector<std::array<PageHandle, 2>> take(const PrefixPin& pin) {
    std::vector<std::array<PageHandle, 2>> pages;
    for (const PrefixPage& page : pin.pages()) {
      pages.push_back({page.pages[0].share(), page.pages[1].share()});
      // Whoever writes needs it alone, and it is not.
      EXPECT_FALSE(pages.back()[0].exclusive());
    }
    return pages;
  }
  static void compute(const PrefixScope& scope, const Tokens& tokens, Position position,
                      std::array<PageHandle, 2>& page, std::int32_t slot, Answer& answer) {
    std::uint64_t value = std::hash<std::string_view>{}(scope.salt);
    for (Position i = 0; i <= position; ++i)
      value = value * 1099511628211U +
              static_cast<std::uint64_t>(tokens[static_cast<std::size_t>(i)]) + 1;
    for (PageHandle& one : page) {
      ASSERT_TRUE(one.exclusive());
      std::memcpy(one.base() + sizeof value * static_cast<std::size_t>(slot), &value, sizeof value);
    }
    ++answer.computed;
  }
  static void read(const FlatPath& path, const std::vector<std::array<PageHandle, 2>>& pages,
                   Answer& answer) {
    for (std::size_t p = 0; p < pages.size(); ++p)
      for (std::int32_t s = 0; s < path.cuts[p]; ++s)
        for (const PageHandle& one : pages[p]) {
          std::uint64_t value = 0;
          std::memcpy(&value, one.base() + sizeof value * static_cast<std::size_t>(s),
                      sizeof value);
          answer.slots.push_back(value);
        }
  }
};

TEST(PrefixTree, AHitReadsWhatAMissComputesAtEveryLengthAroundAPageBorder) {
  const Tokens prompt = run(100, 70);
  for (int first = 1; first <= 66; ++first)
    for (const int second : {1, 15, 16, 17, 31, 32, 33, 48, 49, 64, 65}) {
      Engine warm(kShape), cold(kShape);
      const FlatPath a = cut(Tokens(prompt.begin(), prompt.begin() + first));
      const FlatPath b = cut(Tokens(prompt.begin(), prompt.begin() + second));
      warm.serve(kAlice, a);
      const auto hit = warm.serve(kAlice, b);
      const auto miss = cold.serve(kAlice, b);
      ASSERT_EQ(hit.slots, miss.slots) << first << " then " << second;
      ASSERT_EQ(hit.computed, std::max(0, second - first));
      ASSERT_EQ(miss.computed, second);
      ASSERT_EQ(warm.check(), "");
    }
}

TEST(PrefixTree, AChangeCostsOnlyWhatFollowsIt) {
  Engine engine({.budget_bytes = 4 << 20, .pool_pages = 200});
  const Tokens prompt = run(100, 70);
  engine.serve(kAlice, cut(prompt));
  for (const std::size_t at : {0U, 1U, 15U, 16U, 17U, 47U, 48U, 68U, 69U}) {
    Tokens edited = prompt;
    edited[at] = -static_cast<TokenId>(at) - 5;
    const auto answer = engine.serve(kAlice, cut(edited));
    EXPECT_EQ(answer.computed, 70 - static_cast<Position>(at)) << at;
    EXPECT_EQ(answer.slots, Engine(kShape).serve(kAlice, cut(edited)).slots);
  }
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, WhatTheServerGeneratedIsRememberedToo) {
  Engine engine(kShape);
  const FlatPath first_turn = cut(run(100, 40));  // a prompt of 30, then 10 generated tokens
  engine.serve(kAlice, first_turn);
  Tokens next = first_turn.tokens;
  next.insert(next.end(), {7, 8, 9, 10, 11});
  EXPECT_EQ(engine.serve(kAlice, cut(next)).computed, 5);
}

TEST(PrefixTree, TenantsShareNothingAndAnEmptySaltIsATenant) {
  Engine engine({.budget_bytes = 4 << 20, .pool_pages = 200});
  const FlatPath path = cut(run(1, 40));
  const std::array<PrefixScope, 5> scopes = {
      PrefixScope{"", ""}, {"alice", ""}, {"bob", ""}, {"", "alice"}, {"alice", "bob"}};
  for (const PrefixScope& scope : scopes)  // nobody finds the others'
    EXPECT_EQ(engine.serve(scope, path).computed, 40);
  for (const PrefixScope& scope : scopes)  // everybody finds the own
    EXPECT_EQ(engine.serve(scope, path).computed, 0);
  EXPECT_EQ(engine.tree().counters().tenants, 5);
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, EqualKeysOfDifferentPagesAreNotConfused) {
  Engine forged({.one_key = true});
  forged.serve(kAlice, cut(run(1, 40)));
  for (const PrefixScope& scope : {kAlice, kBob}) {
    const FlatPath other = cut(run(scope == kAlice ? 500 : 1, 40));
    const auto answer = forged.serve(scope, other);
    EXPECT_EQ(answer.computed, 40);
    EXPECT_EQ(answer.slots, Engine(kShape).serve(scope, other).slots);
  }
  EXPECT_EQ(forged.check(), "");
}

TEST(PrefixTree, PagesWithOtherBordersMatchOnlyByCopy) {
  Engine engine(kShape);
  engine.serve(kAlice, FlatPath({run(1, 16), run(17, 16), run(33, 16)}));
  const PrefixPin pin =
      engine.tree().lookup_and_pin(kAlice, FlatPath({run(1, 16), run(17, 10), run(27, 16)}).plan());
  EXPECT_EQ(pin.matched_tokens(), 16);
  EXPECT_EQ(pin.partial_tokens(), 10);
  EXPECT_EQ(pin.partial_page().tokens.size(), 16U);
  EXPECT_EQ(pin.partial_page().first_position, 16);
  // A remembered page that is shorter than the planned one.
  const PrefixPin other =
      engine.tree().lookup_and_pin(kAlice, FlatPath({run(1, 10), run(11, 16)}).plan());
  EXPECT_EQ(other.matched_tokens(), 0);
  EXPECT_EQ(other.partial_tokens(), 10);
}

TEST(PrefixTree, APageComputedAfterAnEvictionNeverEnters) {
  Engine engine(kShape);
  PrefixPin pin = engine.tree().lookup_and_pin(kAlice, {});
  std::array<PageHandle, 2> pages = {take_page(engine.pool(0)), take_page(engine.pool(1))};
  EXPECT_DEATH(
      static_cast<void>(engine.tree().insert(kAlice, pin, run(1, 16), pages, PageLineage::kLossy)),
      "kExact");
}

TEST(PrefixTree, MisuseEndsTheProcess) {
  Engine engine(kShape);
  PrefixTree& tree = engine.tree();
  engine.serve(kAlice, cut(run(1, 16)));
  engine.serve(kBob, cut(run(1, 16)));
  const FlatPath path = cut(run(1, 16));
  PrefixPin pin = tree.lookup_and_pin(kAlice, path.plan());
  const auto insert = [&](const PrefixScope& scope, PrefixPin& at, const Tokens& tokens,
                          std::array<PageHandle, 2> pages) {
    static_cast<void>(tree.insert(scope, at, tokens, pages, PageLineage::kExact));
  };
  const auto page = [&](int g) { return take_page(engine.pool(g)); };
  PrefixPin nowhere;
  EXPECT_DEATH(insert(kBob, pin, {1}, {page(0), page(1)}), "root");  // another's pin
  PrefixPin partial = tree.lookup_and_pin(kAlice, cut(run(1, 9)).plan());
  EXPECT_EQ(partial.partial_tokens(), 9);
  EXPECT_DEATH(insert(kBob, partial, {1}, {page(0), page(1)}), "matched");
  EXPECT_DEATH(insert(kAlice, nowhere, {1}, {page(0), page(1)}), "tree");  // no lookup before
  EXPECT_DEATH(insert(kAlice, pin, {}, {page(0), page(1)}), "empty");
  EXPECT_DEATH(insert(kAlice, pin, run(1, 17), {page(0), page(1)}), "page_tokens");
  EXPECT_DEATH(insert(kAlice, pin, {1}, {page(0), PageHandle()}), "has_page");
  EXPECT_DEATH(insert(kAlice, pin, {1}, {page(1), page(1)}), "base");  // another pool's page
  EXPECT_DEATH(static_cast<void>(tree.lookup_and_pin(kAlice, {path.tokens, {}})), "sum");
  EXPECT_DEATH(static_cast<void>(pin.partial_page()), "partial_");
  EXPECT_DEATH(
      {
        Engine other(kShape);
        other.serve(kAlice, path);
        const PrefixPin kept = other.tree().lookup_and_pin(kAlice, path.plan());
        static_cast<void>(other.finish());
      },
      "pin_ends_");
}

TEST(PrefixTree, APinKeepsItsPathUntilItGoes) {
  Engine engine(kShape);
  const FlatPath path = cut(run(1, 40));
  engine.serve(kAlice, path);
  PrefixTree& tree = engine.tree();
  PrefixPin pin = tree.lookup_and_pin(kAlice, cut(run(1, 32)).plan());
  // Only the third page may go: its bytes and its record.
  EXPECT_EQ(engine.forget(kAlice, cut(run(1, 16))), 4096 + 8192 + tree.node_bytes());
  EXPECT_EQ(tree.evict(~0ULL, PrefixTree::Victims::kAlsoShared), 0U);
  EXPECT_EQ(tree.counters().nodes, 2);
  ASSERT_EQ(pin.pages().size(), 2U);
  EXPECT_EQ(pin.pages()[1].first_position, 16);
  PrefixPin moved = std::move(pin);
  pin = PrefixPin();
  EXPECT_EQ(tree.clear(), 0U);
  moved.release();
  moved.release();
  EXPECT_EQ(moved.matched_tokens(), 0);
  EXPECT_EQ(engine.check(), "");
  EXPECT_GT(tree.clear(), 0U);
  EXPECT_EQ(tree.counters().nodes, 0);
  EXPECT_EQ(tree.counters().tenants, 0);
  EXPECT_EQ(engine.finish(), "");
}

TEST(PrefixTree, TheLeastRecentlyUsedLeafGoesFirst) {
  Engine engine(kShape);
  PrefixTree& tree = engine.tree();
  const FlatPath a = cut(run(1, 48)), b = cut(run(100, 16)), c = cut(run(200, 32));
  for (const FlatPath* path : {&a, &b, &c}) engine.serve(kAlice, *path);
  static_cast<void>(tree.lookup_and_pin(kAlice, cut(run(1, 20)).plan()));  // a's first two pages
  const auto matched = [&](const FlatPath& path) {
    // A lookup would count as a use.
    return tree.find_difference(kAlice, path.plan(), PrefixPin(), Audience::kTenant).equal_tokens;
  };
  const std::array<std::array<Position, 3>, 6> expected = {
      {{32, 16, 32}, {32, 0, 32}, {32, 0, 16}, {32, 0, 0}, {16, 0, 0}, {0, 0, 0}}};
  for (const auto& [a_left, b_left, c_left] : expected) {
    EXPECT_GT(tree.evict(1, PrefixTree::Victims::kCachedOnly), 12000U);
    EXPECT_EQ(matched(a), a_left);
    EXPECT_EQ(matched(b), b_left);
    EXPECT_EQ(matched(c), c_left);
    EXPECT_EQ(engine.check(), "");
  }
}

TEST(PrefixTree, EvictionPassesOverWhatLivingSequencesHold) {
  Engine engine(kShape);
  PrefixTree& tree = engine.tree();
  const FlatPath held = cut(run(1, 48)), idle = cut(run(100, 48));
  engine.serve(kAlice, held);
  engine.serve(kAlice, idle);
  const auto hold = [&](std::size_t from) {
    const PrefixPin pin = tree.lookup_and_pin(kAlice, held.plan());
    PrefixWorld::Sequence sequence;
    const std::vector<PrefixPage> pages = pin.pages();
    for (std::size_t p = from; p < pages.size(); ++p)
      for (int g = 0; g < 2; ++g)
        sequence.push_back({g, pages[p].pages[PrefixWorld::index(g)].share()});
    engine.sequences().clear();
    engine.sequences().push_back(std::move(sequence));
  };
  hold(0);
  static_cast<void>(tree.lookup_and_pin(kAlice, idle.plan()));  // the held one is older
  EXPECT_EQ(tree.memory().shared_pages, 6);
  EXPECT_EQ(tree.memory().cached_only_bytes, 3 * (4096U + 8192U));
  EXPECT_GT(tree.evict(1, PrefixTree::Victims::kCachedOnly), 12000U);
  EXPECT_EQ(tree.lookup_and_pin(kAlice, held.plan()).matched_tokens(), 48);
  EXPECT_EQ(tree.lookup_and_pin(kAlice, idle.plan()).matched_tokens(), 32);
  // Nothing more than the idle pages can come back, even by force.
  tree.evict(~0ULL, PrefixTree::Victims::kCachedOnly);
  EXPECT_EQ(tree.evict(~0ULL, PrefixTree::Victims::kAlsoShared), 0U);
  EXPECT_EQ(tree.counters().nodes, 3);
  // The sequence drops its first page: it comes back only with those after it.
  hold(1);
  EXPECT_EQ(tree.evict(1, PrefixTree::Victims::kCachedOnly), 0U);
  EXPECT_EQ(tree.counters().nodes, 3);
  EXPECT_GT(tree.evict(5000, PrefixTree::Victims::kAlsoShared), 12000U);
  EXPECT_EQ(tree.counters().nodes, 0);
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, AgentsThatTakeTurnsKeepTheirPrefixesAmongStrangers) {
  Engine engine({.budget_bytes = 20 * (4096 + 8192 + 600) + 20000});
  const auto serve = [&](const PrefixScope& scope, TokenId first, int tokens) {
    constexpr std::uint64_t kFourPages = 4 * (4096 + 8192 + 600);
    const std::uint64_t missing = engine.budget().missing_bytes(kFourPages);
    if (missing > 0) engine.tree().evict(missing, PrefixTree::Victims::kCachedOnly);
    return engine.serve(scope, cut(run(first, tokens))).computed;
  };
  for (int turn = 0; turn < 50; ++turn) {
    EXPECT_EQ(serve(kAlice, 1, 48), turn == 0 ? 48 : 0) << turn;
    EXPECT_EQ(serve(kAlice, 1000, 48), turn == 0 ? 48 : 0) << turn;
    for (int stranger = 0; stranger < 6; ++stranger)
      EXPECT_EQ(serve(kBob, 10000 + 100 * (6 * turn + stranger), 10), 10);
  }
  EXPECT_GT(engine.tree().counters().evicted_pages, 200U);
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, NoRoomLeavesEverythingAsItWas) {
  Engine engine(kShape);
  PrefixTree& tree = engine.tree();
  PrefixPin pin = tree.lookup_and_pin(kAlice, {});
  std::array<PageHandle, 2> pages = {take_page(engine.pool(0)), take_page(engine.pool(1))};
  for (const std::uint64_t left : {std::uint64_t{0}, std::uint64_t{sizeof(PrefixNode)}}) {
    const auto rest = take_bytes(engine.budget(), engine.budget().free_bytes() - left);
    EXPECT_EQ(tree.insert(kAlice, pin, run(1, 16), pages, PageLineage::kExact),
              PrefixTree::Insertion::kNoRoom);
  }
  EXPECT_EQ(tree.counters().refused_pages, 2U);
  EXPECT_EQ(tree.counters().tenants, 0);
  EXPECT_TRUE(pages[0].exclusive() && pages[1].exclusive());
  EXPECT_EQ(tree.insert(kAlice, pin, run(1, 16), pages, PageLineage::kExact),
            PrefixTree::Insertion::kAdded);
  EXPECT_FALSE(pages[0].has_page());
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, ABudgetWithoutRoomForItsListIsAFailure) {
  const auto budget = std::move(KvBudget::create(100 << 10)).value();
  const KvPageLayout layout{.layers = 1, .kv_heads = 1, .head_dim = 64, .page_tokens = 16};
  const auto pool = std::move(PagePool::create(*budget, layout, 4)).value();
  const auto rest = take_bytes(*budget, budget->free_bytes() - 1000);
  auto hasher = std::make_unique<LineageHasher>(LineageModel{"m", {{layout, 0}}});
  EXPECT_EQ(PrefixTree::create(*budget, {pool.get()}, std::move(hasher)).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(PrefixTree, TheOlderOfTwoEqualPagesStays) {
  Engine engine(kShape);
  PrefixTree& tree = engine.tree();
  PrefixPin one = tree.lookup_and_pin(kAlice, {});
  PrefixPin two = tree.lookup_and_pin(kAlice, {});
  std::array<PageHandle, 2> first = {take_page(engine.pool(0)), take_page(engine.pool(1))};
  std::array<PageHandle, 2> second = {take_page(engine.pool(0)), take_page(engine.pool(1))};
  const PageId kept = first[0].id();
  EXPECT_EQ(tree.insert(kAlice, one, run(1, 16), first, PageLineage::kExact),
            PrefixTree::Insertion::kAdded);
  EXPECT_EQ(tree.insert(kAlice, two, run(1, 16), second, PageLineage::kExact),
            PrefixTree::Insertion::kPresent);
  EXPECT_FALSE(second[0].has_page());
  EXPECT_EQ(two.pages().back().pages[0].id(), kept);
  EXPECT_EQ(engine.pool(0).counters().used_pages, 1);
  EXPECT_EQ(tree.key(kAlice, one), tree.key(kAlice, two));
  EXPECT_NE(tree.key(kAlice, one), tree.hasher().root(kAlice));
}

TEST(PrefixTree, APageHasOnePlace) {
  Engine engine(kShape);
  PrefixTree& tree = engine.tree();
  PrefixPin pin = tree.lookup_and_pin(kAlice, {});
  std::array<PageHandle, 2> pages = {take_page(engine.pool(0)), take_page(engine.pool(1))};
  std::array<PageHandle, 2> again = {pages[0].share(), take_page(engine.pool(1))};
  EXPECT_EQ(tree.insert(kAlice, pin, run(1, 16), pages, PageLineage::kExact),
            PrefixTree::Insertion::kAdded);
  PrefixPin shorter = tree.lookup_and_pin(kAlice, cut(run(1, 10)).plan());
  EXPECT_EQ(tree.insert(kAlice, shorter, run(1, 10), again, PageLineage::kExact),
            PrefixTree::Insertion::kElsewhere);
  EXPECT_TRUE(again[0].has_page() && again[1].has_page());
  EXPECT_EQ(tree.counters().nodes, 1);
  EXPECT_EQ(tree.memory().shared_pages, 1);
  EXPECT_EQ(tree.memory().cached_only_pages, 1);
  again[0] = take_page(engine.pool(0));
  EXPECT_EQ(tree.insert(kAlice, shorter, run(1, 10), again, PageLineage::kExact),
            PrefixTree::Insertion::kAdded);
  EXPECT_EQ(tree.memory().cached_only_bytes, 2 * (4096U + 8192U));
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, APageIsForgottenByItsPoolToo) {
  Engine engine(kShape);
  engine.serve(kAlice, cut(run(1, 48)));
  PrefixTree& tree = engine.tree();
  // Another form of the same layers: pages with the same numbers.
  const KvPageLayout layout{
      .layers = 1, .kv_heads = 1, .head_dim = 64, .page_tokens = 16, .format = KvFormat::kInt8};
  const auto other = std::move(PagePool::create(engine.budget(), layout, 4)).value();
  const PageHandle first = take_page(*other), second = take_page(*other);
  const auto pages = [&] {
    return tree.lookup_and_pin(kAlice, cut(run(1, 48)).plan()).pages().size();
  };
  EXPECT_EQ(tree.forget_page(second), 0U);
  EXPECT_EQ(pages(), 3U);
  const PageHandle held = [&] {
    const PrefixPin pin = tree.lookup_and_pin(kAlice, cut(run(1, 48)).plan());
    return pin.pages()[1].pages[0].share();
  }();
  ASSERT_EQ(held.id(), second.id());
  EXPECT_GT(tree.forget_page(held), 0U);
  EXPECT_TRUE(held.exclusive());
  EXPECT_EQ(pages(), 1U);
  EXPECT_EQ(tree.forget_page(held), 0U);
}

TEST(PrefixTree, AWindowedGroupMustHaveTheNextQuerysWindow) {
  // Window 20: after 48 tokens the next query sees positions 29..47, pages 1 and 2 of 0..2.
  const auto matched_without = [](std::vector<std::size_t> lacking, int window) {
    Engine engine({.window = window});
    PrefixTree& tree = engine.tree();
    const FlatPath path = cut(run(1, 48));
    {
      PrefixPin pin = tree.lookup_and_pin(kAlice, {});
      for (std::size_t p = 0; p < 3; ++p) {
        std::array<PageHandle, 2> pages = {take_page(engine.pool(0)), PageHandle()};
        if (std::find(lacking.begin(), lacking.end(), p) == lacking.end())
          pages[1] = take_page(engine.pool(1));
        EXPECT_EQ(tree.insert(kAlice, pin, std::span(path.tokens).subspan(kPage * p, kPage), pages,
                              PageLineage::kExact),
                  PrefixTree::Insertion::kAdded);
      }
    }
    const PrefixPin pin = tree.lookup_and_pin(kAlice, path.plan());
    const auto difference = tree.find_difference(kAlice, path.plan(), pin, Audience::kTenant);
    EXPECT_EQ(difference.cause, pin.matched_tokens() == 48 ? Cause::kNone : Cause::kEvicted);
    EXPECT_EQ(engine.check(), "");
    return pin.matched_tokens();
  };
  EXPECT_EQ(matched_without({}, 20), 48);
  EXPECT_EQ(matched_without({0}, 20), 48);
  EXPECT_EQ(matched_without({0}, 33), 48);
  EXPECT_EQ(matched_without({0}, 34), 0);
  EXPECT_EQ(matched_without({1}, 20), 16);
  EXPECT_EQ(matched_without({1}, 17), 48);  // 32..47
  EXPECT_EQ(matched_without({1}, 18), 16);
  EXPECT_EQ(matched_without({2}, 20), 32);
  EXPECT_EQ(matched_without({0, 1, 2}, 1), 48);  // the next query sees only itself
  EXPECT_EQ(matched_without({0, 1, 2}, 2), 0);
}

TEST(PrefixTree, ALackingPageIsFilledInWhenItComesAgain) {
  Engine engine({.window = 20});
  PrefixTree& tree = engine.tree();
  const FlatPath path = cut(run(1, 16));
  for (const bool windowed : {false, true}) {
    PrefixPin pin = tree.lookup_and_pin(kAlice, path.plan());
    EXPECT_EQ(pin.matched_tokens(), 0);
    EXPECT_EQ(pin.partial_tokens(), 0);
    std::array<PageHandle, 2> pages = {take_page(engine.pool(0)), PageHandle()};
    if (windowed) pages[1] = take_page(engine.pool(1));
    EXPECT_EQ(tree.insert(kAlice, pin, path.tokens, pages, PageLineage::kExact),
              windowed ? PrefixTree::Insertion::kPresent : PrefixTree::Insertion::kAdded);
  }
  EXPECT_EQ(tree.lookup_and_pin(kAlice, path.plan()).matched_tokens(), 16);
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, EveryMissHasItsCause) {
  Engine engine({.budget_bytes = 4 << 20, .pool_pages = 200});
  PrefixTree& tree = engine.tree();
  const auto why = [&](const PrefixScope& scope, const FlatPath& path,
                       Audience audience = Audience::kTenant) {
    const PrefixPin pin = tree.lookup_and_pin(scope, path.plan());
    return tree.find_difference(scope, path.plan(), pin, audience);
  };
  const FlatPath known = cut(run(1, 60));
  EXPECT_EQ(why(kAlice, known).cause, Cause::kNoEntry);
  engine.serve(kAlice, known);
  EXPECT_EQ(why(kAlice, known).cause, Cause::kNone);
  EXPECT_EQ(why(kAlice, cut(run(1, 50))).cause, Cause::kNone);
  EXPECT_EQ(why(kAlice, cut(run(2, 50))).cause, Cause::kNoEntry);

  const PrefixDifference longer = why(kAlice, cut(run(1, 61)));
  EXPECT_EQ(longer.cause, Cause::kNewText);
  EXPECT_EQ(longer.matched_tokens, 60);

  Tokens edited = run(1, 60);
  edited[35] = 777;
  const PrefixDifference differs = why(kAlice, cut(edited));
  EXPECT_EQ(differs.cause, Cause::kDiffers);
  EXPECT_EQ(differs.equal_tokens, 35);
  EXPECT_EQ(differs.matched_tokens, 35);
  EXPECT_EQ(differs.before, run(12, 24));
  EXPECT_EQ(differs.remembered, run(36, 24));
  EXPECT_EQ(differs.planned.size(), 24U);
  EXPECT_EQ(differs.planned[0], 777);
  EXPECT_EQ(differs.planned[1], 37);

  const FlatPath other_cuts({run(1, 16), run(17, 8), run(25, 16)});
  const PrefixDifference borders = why(kAlice, other_cuts);
  EXPECT_EQ(borders.cause, Cause::kOtherBorders);
  EXPECT_EQ(borders.matched_tokens, 24);
  EXPECT_EQ(borders.equal_tokens, 40);

  // The other tenant learns nothing, the operator learns how much, and nobody sees the text.
  EXPECT_EQ(why(kBob, known).cause, Cause::kNoEntry);
  EXPECT_EQ(why(kBob, known).equal_tokens, 0);
  const PrefixDifference elsewhere = why(kBob, known, Audience::kOperator);
  EXPECT_EQ(elsewhere.cause, Cause::kOtherSalt);
  EXPECT_TRUE(elsewhere.before.empty() && elsewhere.remembered.empty());
  EXPECT_EQ(elsewhere.equal_tokens, 0);
  EXPECT_EQ(why(kAlice, cut(run(1, 61)), Audience::kOperator).cause, Cause::kNewText);
  EXPECT_EQ(why({"carol", "adapter"}, known, Audience::kOperator).cause, Cause::kNoEntry);

  engine.forget(kAlice, cut(run(1, 32)));
  const PrefixDifference evicted = why(kAlice, known);
  EXPECT_EQ(evicted.cause, Cause::kEvicted);
  EXPECT_EQ(evicted.matched_tokens, 16);
  // After enough other evictions the old one is not known any more.
  for (int i = 0; i < 16; ++i) {
    engine.serve(kBob, cut(run(5000 + 100 * i, 16)));
    engine.forget(kBob, cut(run(5000 + 100 * i, 16)));
  }
  EXPECT_EQ(why(kAlice, known).cause, Cause::kNewText);
  EXPECT_EQ(engine.check(), "");
}

TEST(PrefixTree, CountersSayHowManyTokensWereFound) {
  Engine engine(kShape);
  engine.serve(kAlice, cut(run(1, 40)));
  engine.serve(kAlice, cut(run(1, 36)));
  const PrefixTreeCounters counters = engine.tree().counters();
  EXPECT_EQ(counters.lookups, 2U);
  EXPECT_EQ(counters.queried_tokens, 76U);
  EXPECT_EQ(counters.matched_tokens, 32U);
  EXPECT_EQ(counters.partial_tokens, 4U);
  EXPECT_EQ(counters.inserted_pages, 4U);  // the last of the second prompt is shorter
  EXPECT_EQ(counters.nodes, 4);
  EXPECT_EQ(counters.evicted_pages, 0U);
}

}  // namespace
}  // namespace memdecay
