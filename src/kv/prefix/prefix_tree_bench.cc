// Cost of prefix tree operations: lookup of long prompts, insertion, eviction by number of nodes.
//
// Pages are 4 KiB and never touched, so the pool's part is small: what is measured is the tree's.
// A 16k prompt is 512 pages.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/check.h"
#include "kv/prefix/prefix_tree.h"
#include "kv/take_for_test.h"

namespace memdecay {
namespace {

constexpr PrefixScope kScope = {"tenant", ""};
constexpr std::size_t kPage = 32;

struct Bench {
  explicit Bench(std::int32_t pages) {
    const KvPageLayout layout{.layers = 1, .kv_heads = 1, .head_dim = 32, .page_tokens = 32};
    pool = std::move(PagePool::create(*budget, layout, pages)).value();
    tree = std::move(PrefixTree::create(
                         *budget, {pool.get()},
                         std::make_unique<LineageHasher>(LineageModel{"model", {{layout, 0}}})))
               .value();
  }
  void insert(PrefixPin& pin, std::span<const TokenId> tokens) {
    std::array<PageHandle, 1> page = {take_page(*pool)};
    MEMDECAY_CHECK(tree->insert(kScope, pin, tokens, page, PageLineage::kExact) !=
                   PrefixTree::Insertion::kNoRoom);
  }
  /// Remembers a sequence in pages of 32.
  void insert_all(const std::vector<TokenId>& tokens) {
    PrefixPin pin = tree->lookup_and_pin(kScope, {});
    for (std::size_t at = 0; at < tokens.size(); at += kPage)
      insert(pin, std::span(tokens).subspan(at, kPage));
  }
  /// Lets go of the first page of a sequence and of what follows it.
  void forget(std::span<const TokenId> tokens) {
    const std::int32_t cut = kPage;
    const PrefixPlan plan{tokens.first(kPage), {&cut, 1}};
    const PageHandle first = tree->lookup_and_pin(kScope, plan).pages().front().pages[0].share();
    tree->forget_page(first);
  }

  std::unique_ptr<KvBudget> budget = std::move(KvBudget::create(KvBudget::kUnlimited)).value();
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<PrefixTree> tree;
};

std::vector<TokenId> random_tokens(std::mt19937& random, std::size_t count) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 50000);
  return tokens;
}

/// Conversations of 100 pages, the first half of each shared with others, until there are enough.
void fill(Bench& bench, std::int64_t pages, std::mt19937& random) {
  const std::vector<TokenId> shared = random_tokens(random, 50 * kPage);
  while (bench.tree->counters().nodes < pages) {
    std::vector<TokenId> tokens(
        shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(random() % 50 * kPage));
    const std::vector<TokenId> own = random_tokens(random, 50 * kPage);
    tokens.insert(tokens.end(), own.begin(), own.end());
    bench.insert_all(tokens);
  }
}

void lookup_and_release(benchmark::State& state) {
  Bench bench(200000);
  std::mt19937 random(1);
  const std::vector<TokenId> tokens =
      random_tokens(random, static_cast<std::size_t>(state.range(0)));
  bench.insert_all(tokens);
  fill(bench, state.range(1), random);
  const std::vector<std::int32_t> cuts(tokens.size() / kPage, kPage);
  for (auto _ : state) {
    const PrefixPin pin = bench.tree->lookup_and_pin(kScope, {tokens, cuts});
    MEMDECAY_CHECK(pin.matched_tokens() == state.range(0));
  }
}
BENCHMARK(lookup_and_release)
    ->ArgNames({"tokens", "nodes"})
    ->ArgsProduct({{512, 4096, 16384}, {0, 100000}});

/// The same prompt with its last page changed: the rest of the path and why it missed.
void find_difference(benchmark::State& state) {
  Bench bench(200000);
  std::mt19937 random(1);
  std::vector<TokenId> tokens = random_tokens(random, 16384);
  bench.insert_all(tokens);
  tokens[16380] = -1;
  const std::vector<std::int32_t> cuts(tokens.size() / kPage, kPage);
  const PrefixPin pin = bench.tree->lookup_and_pin(kScope, {tokens, cuts});
  for (auto _ : state)
    benchmark::DoNotOptimize(bench.tree->find_difference(kScope, {tokens, cuts}, pin,
                                                         PrefixDifference::Audience::kTenant));
}
BENCHMARK(find_difference);

/// A page of its own, found again and forgotten, with that many others.
void insert_and_forget(benchmark::State& state) {
  Bench bench(200000);
  std::mt19937 random(1);
  fill(bench, state.range(0), random);
  const std::vector<TokenId> tokens = random_tokens(random, kPage);
  for (auto _ : state) {
    {
      PrefixPin pin = bench.tree->lookup_and_pin(kScope, {});
      bench.insert(pin, tokens);
    }
    bench.forget(tokens);
  }
}
BENCHMARK(insert_and_forget)->ArgName("nodes")->Arg(1000)->Arg(100000);

/// A whole conversation of 16k tokens: 512 pages.
void insert_16k(benchmark::State& state) {
  Bench bench(200000);
  std::mt19937 random(1);
  fill(bench, 1000, random);
  const std::vector<TokenId> tokens = random_tokens(random, 16384);
  for (auto _ : state) {
    bench.insert_all(tokens);
    state.PauseTiming();
    bench.forget(tokens);
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * 512);
}
BENCHMARK(insert_16k);

/// One page a call, least recently used first, until half are gone.
void evict(benchmark::State& state) {
  Bench bench(200000);
  std::mt19937 random(1);
  fill(bench, state.range(0), random);
  for (auto _ : state) {
    benchmark::DoNotOptimize(bench.tree->evict(1, PrefixTree::Victims::kCachedOnly));
    if (bench.tree->counters().nodes < state.range(0) / 2) {
      state.PauseTiming();
      fill(bench, state.range(0), random);
      state.ResumeTiming();
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(evict)->ArgName("nodes")->RangeMultiplier(10)->Range(1000, 100000);

/// The pool's part of an eviction: a page comes and goes.
void allocate_and_release_page(benchmark::State& state) {
  const Bench bench(200000);
  for (auto _ : state) benchmark::DoNotOptimize(take_page(*bench.pool));
}
BENCHMARK(allocate_and_release_page);

/// Every conversation begins with another page: siblings, not depth.
void lookup_among_siblings(benchmark::State& state) {
  Bench bench(200000);
  std::mt19937 random(1);
  std::vector<TokenId> tokens;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    tokens = random_tokens(random, kPage);
    bench.insert_all(tokens);
  }
  const std::int32_t cut = kPage;
  for (auto _ : state)
    benchmark::DoNotOptimize(bench.tree->lookup_and_pin(kScope, {tokens, {&cut, 1}}));
}
BENCHMARK(lookup_among_siblings)->ArgName("siblings")->Arg(10)->Arg(1000)->Arg(100000);

}  // namespace
}  // namespace memdecay
