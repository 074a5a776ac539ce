// Cost of the page operations (ns) and page utilisation by page size.
//
// The layout is SmolLM2-135M's: 30 layers, 3 kv heads of 64, fp16. Append* rows count one call;
// "touch" writes every system page of what was appended, as a forward pass does, so its time holds
// the kernel's page faults. Utilisation rows report counters, their time means nothing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "core/check.h"
#include "kv/kv_cache.h"
#include "kv/take_for_test.h"

namespace memdecay {
namespace {

constexpr LayerGroupId kGroup(0);

KvPageLayout model_layout(std::int64_t page_tokens) {
  return {.layers = 30,
          .kv_heads = 3,
          .head_dim = 64,
          .page_tokens = static_cast<int>(page_tokens),
          .format = KvFormat::kF16};
}

std::unique_ptr<KvCache> make_cache(std::int64_t page_tokens, std::int32_t window = 0,
                                    HugePages huge = HugePages::kAsk) {
  return std::move(
             KvCache::create({.groups = {{model_layout(page_tokens), window}}, .huge_pages = huge}))
      .value();
}

void need(bool condition) {
  MEMDECAY_CHECK(condition);
}

std::size_t to_size(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

void touch_new_pages(const Sequence& sequence, Position from) {
  const PagedKvView view = sequence.view(kGroup);
  for (const KvPageRef& page : view.pages)
    if (page.first_position >= from)
      for (std::size_t at = 0; at < view.layout->page_bytes(); at += system_page_bytes())
        page.base[at] = std::byte{1};
}

/// Decode: one token a call, pages allocated (not touched) as they are needed.
void append_one_token(benchmark::State& state) {
  const auto cache = make_cache(state.range(0));
  auto sequence = cache->try_create_sequence();
  for (auto _ : state) {
    need(static_cast<bool>(sequence->try_append(1)));
    if (sequence->size() == 8192) {
      state.PauseTiming();
      need(sequence->try_truncate(0));
      state.ResumeTiming();
    }
  }
}
BENCHMARK(append_one_token)->Arg(16)->Arg(32)->Arg(64);

/// Decode in a sliding window: a page comes and a page goes every page_tokens calls; touched.
void append_one_token_in_a_window(benchmark::State& state) {
  const auto cache = make_cache(32, 512, state.range(0) != 0 ? HugePages::kAsk : HugePages::kNever);
  auto sequence = cache->try_create_sequence();
  for (auto _ : state) {
    const Position size = sequence->size();
    need(static_cast<bool>(sequence->try_append(1)));
    touch_new_pages(*sequence, size);
  }
}
BENCHMARK(append_one_token_in_a_window)->ArgName("huge")->Arg(0)->Arg(1);

/// A prompt of 512 tokens: 16 pages allocated, touched, and freed again.
void append_and_close_512(benchmark::State& state) {
  const bool touch = state.range(1) != 0;
  const auto cache = make_cache(32, 0, state.range(0) != 0 ? HugePages::kAsk : HugePages::kNever);
  for (auto _ : state) {
    auto sequence = cache->try_create_sequence();
    need(static_cast<bool>(sequence->try_append(512)));
    if (touch) touch_new_pages(*sequence, 0);
  }
  state.counters["pages"] = 16;
}
BENCHMARK(append_and_close_512)->ArgNames({"huge", "touch"})->ArgsProduct({{0, 1}, {0, 1}});

void fork_and_close(benchmark::State& state) {
  const auto cache = make_cache(32);
  auto sequence = cache->try_create_sequence();
  need(static_cast<bool>(sequence->try_append(static_cast<std::int32_t>(state.range(0)))));
  for (auto _ : state) benchmark::DoNotOptimize(sequence->try_fork());
}
BENCHMARK(fork_and_close)->ArgName("tokens")->Arg(512)->Arg(4096)->Arg(32768);

/// The first write after a fork copies the partly filled last page.
void copy_on_write(benchmark::State& state) {
  const auto cache = make_cache(32);
  auto sequence = cache->try_create_sequence();
  need(static_cast<bool>(sequence->try_append(500)));
  touch_new_pages(*sequence, 0);
  for (auto _ : state) {
    auto fork = sequence->try_fork();
    need(static_cast<bool>(fork->try_append(1)));
  }
}
BENCHMARK(copy_on_write);

/// Cut back within the last page and append again: no page comes or goes.
void truncate_one_token(benchmark::State& state) {
  const auto cache = make_cache(32);
  auto sequence = cache->try_create_sequence();
  need(static_cast<bool>(sequence->try_append(1000)));
  for (auto _ : state) {
    need(sequence->try_truncate(999));
    need(static_cast<bool>(sequence->try_append(1)));
  }
}
BENCHMARK(truncate_one_token);

/// 512 tokens with a cut every so many: 16 to 64 pages, not touched, and freed again.
void append_with_cuts_and_close_512(benchmark::State& state) {
  const auto cache = make_cache(32);
  std::vector<Position> cuts;
  for (auto cut = state.range(0); cut < 512; cut += state.range(0))
    cuts.push_back(static_cast<Position>(cut));
  for (auto _ : state) {
    auto sequence = cache->try_create_sequence();
    need(static_cast<bool>(sequence->try_append(512, cuts)));
  }
}
BENCHMARK(append_with_cuts_and_close_512)->ArgName("every")->Arg(512)->Arg(48)->Arg(8);

/// 64 pages at random places of a table become tombstones; one call.
void drop_64_pages(benchmark::State& state) {
  const KvPageLayout tiny{
      .layers = 1, .kv_heads = 1, .head_dim = 4, .page_tokens = 16, .format = KvFormat::kF16};
  const auto entries = static_cast<std::int32_t>(state.range(0));
  const auto cache = std::move(KvCache::create({.groups = {{tiny}}, .max_pages = entries})).value();
  SequenceHandle sequence;
  std::mt19937 random(1);
  for (auto _ : state) {
    state.PauseTiming();
    if (sequence == nullptr || sequence->view(kGroup).pages.size() * 10 < 9U * to_size(entries)) {
      sequence.reset();
      sequence = cache->try_create_sequence();
      need(static_cast<bool>(sequence->try_append(16 * entries)));
    }
    const auto pages = sequence->view(kGroup).pages;
    std::vector<Position> names;
    while (names.size() < 64) {
      names.push_back(pages[random() % pages.size()].first_position);
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
    }
    state.ResumeTiming();
    sequence->drop(names);
  }
}
BENCHMARK(drop_64_pages)->ArgName("entries")->RangeMultiplier(10)->Range(1000, 1000000);

/// A page takes another form and back, with a conversion that does nothing: what kv itself costs.
void replace_twice(benchmark::State& state) {
  const auto cache =
      std::move(KvCache::create({.groups = {{model_layout(32)}}, .forms = {KvFormat::kInt8}}))
          .value();
  auto sequence = cache->try_create_sequence();
  need(static_cast<bool>(sequence->try_append(32768)));
  const auto nothing = [](const KvPageLayout&, const std::byte*, const KvPageLayout&, std::byte*,
                          std::int32_t) {};
  for (auto _ : state) {
    need(static_cast<bool>(sequence->try_replace(16000, KvFormat::kInt8, nothing)));
    need(static_cast<bool>(sequence->try_replace(16000, KvFormat::kF16, nothing)));
  }
}
BENCHMARK(replace_twice);

/// Four sealed pages of 8 tokens become one, the new page's faults included.
void pack_four_pages(benchmark::State& state) {
  const auto cache = make_cache(32);
  auto sequence = cache->try_create_sequence();
  const std::vector<Position> pages{0, 8, 16, 24};
  need(static_cast<bool>(sequence->try_append(32, std::span(pages).subspan(1))));
  need(static_cast<bool>(sequence->try_append(1, std::vector<Position>{32})));
  touch_new_pages(*sequence, 0);
  for (auto _ : state) {
    auto fork = sequence->try_fork();
    need(static_cast<bool>(fork->pack_pages(pages)));
  }
}
BENCHMARK(pack_four_pages);

void validate_32k_tokens(benchmark::State& state) {
  const auto cache = make_cache(32);
  auto sequence = cache->try_create_sequence();
  need(static_cast<bool>(sequence->try_append(32768)));
  for (auto _ : state) need(cache->validate().ok());
}
BENCHMARK(validate_32k_tokens);

/// Allocation and release at random places of a pool that is half full.
void allocate_and_release(benchmark::State& state) {
  const KvPageLayout tiny{
      .layers = 1, .kv_heads = 1, .head_dim = 4, .page_tokens = 16, .format = KvFormat::kF16};
  const auto budget = std::move(KvBudget::create(KvBudget::kUnlimited)).value();
  const auto pages = static_cast<std::int32_t>(state.range(0));
  const auto pool = std::move(PagePool::create(*budget, tiny, pages)).value();
  std::vector<PageHandle> held;
  for (std::int32_t i = 0; i < pages / 2; ++i) held.push_back(take_page(*pool));
  std::mt19937 random(1);
  for (auto _ : state) {
    PageHandle& page = held[random() % held.size()];
    page.reset();
    page = take_page(*pool);
  }
}
BENCHMARK(allocate_and_release)->ArgName("pages")->RangeMultiplier(10)->Range(1000, 1000000);

/// Packs what a greedy hand would: runs of neighbouring sealed pages that free at least one page,
/// from the front, each at most `most` pages long; 1 stands for any number into a single page.
/// Returns slots that were copied.
std::int64_t pack_all(Sequence& sequence, std::size_t most) {
  std::int64_t copied = 0;
  for (std::size_t first = 0;; ++first) {
    const auto pages = sequence.view(kGroup).pages;
    const std::int32_t page_tokens = sequence.view(kGroup).layout->page_tokens;
    const std::size_t sealed = pages.size() - (sequence.is_open() ? 1 : 0);
    if (first + 2 > sealed) return copied;
    std::vector<Position> names;
    std::int32_t slots = 0;
    for (std::size_t i = first; i < sealed && (most == 1 || names.size() < most); ++i) {
      names.push_back(pages[i].first_position);
      slots += pages[i].filled;
      if (most == 1 && slots > page_tokens) break;
      if ((slots + page_tokens - 1) / page_tokens >= static_cast<std::int32_t>(names.size()))
        continue;
      need(static_cast<bool>(sequence.pack_pages(names)));
      copied += slots;
      break;
    }
  }
}

/// Twenty conversations of the recorded airline episodes' shape: a policy text of about 1,700
/// tokens and 8 to 30 further messages, most short, tool results longer. Lengths are drawn from a
/// log-normal; a state is sampled after each message. With `cuts` each message begins a page; with
/// `pack` > 0 neighbours are packed after each message, so many at once at most.
void utilisation(benchmark::State& state) {
  double filled = 0, allocated = 0, final_share = 0, bytes = 0, tokens_held = 0, copied = 0;
  constexpr int kConversations = 20;
  const bool cuts = state.range(1) != 0;
  for (auto _ : state) {
    std::mt19937 random(42);
    std::lognormal_distribution<double> length(4.2, 0.9);
    filled = allocated = final_share = bytes = tokens_held = copied = 0;
    for (int c = 0; c < kConversations; ++c) {
      const auto cache = make_cache(state.range(0));
      auto sequence = cache->try_create_sequence();
      need(static_cast<bool>(sequence->try_append(1700)));
      for (auto messages = 8 + random() % 23; messages > 0; --messages) {
        const auto tokens = 4 + std::min(1500, static_cast<std::int32_t>(length(random)));
        const Position border = sequence->size();
        need(static_cast<bool>(sequence->try_append(tokens, std::span(&border, cuts ? 1 : 0))));
        if (state.range(2) > 0)
          copied += static_cast<double>(pack_all(*sequence, to_size(state.range(2))));
        const KvUsage usage = cache->usage();
        filled += usage.filled_slots;
        allocated += usage.allocated_slots;
      }
      tokens_held += sequence->size();
      final_share += cache->usage().utilisation();
      bytes +=
          static_cast<double>(sequence->memory().exclusive_bytes + sequence->memory().table_bytes);
    }
  }
  state.counters["utilisation"] = filled / allocated;
  state.counters["at_end"] = final_share / kConversations;
  state.counters["MiB_per_sequence"] = bytes / kConversations / (1 << 20);
  state.counters["copies_per_token"] = copied / tokens_held;
}
BENCHMARK(utilisation)
    ->ArgNames({"page_tokens", "cuts", "pack"})
    ->ArgsProduct({{16, 32, 64}, {0}, {0}})
    ->ArgsProduct({{16, 32, 64}, {1}, {0, 1, 4, 8, 16}})
    ->Iterations(1);

}  // namespace
}  // namespace memdecay
