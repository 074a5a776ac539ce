// What a probe costs a decode step: steps with and without it in turn, over a context of random
// keys and values.
//
//   MEMDECAY_BENCH_MODEL=model.gguf transformer_bench --benchmark_filter=probed_decode
//
// Without a model file a random one of SmolLM2-135M's shape takes its place. Counters are medians
// over the steps, in ms; `ratio` is probed / plain, `worst_phase` the slowest phase's median over
// the fastest one's.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "model/transformer/loaded_model_for_test.h"
#include "model/transformer/random_model_for_test.h"

namespace memdecay {
namespace {

GgufFile open_model() {
  if (const char* path = std::getenv("MEMDECAY_BENCH_MODEL")) return GgufFile::open(path).value();
  RandomModelShape shape;
  shape.layers = 30, shape.width = 576, shape.inner = 1536, shape.heads = 9, shape.kv_heads = 3;
  shape.vocab = 49152;
  static const std::vector<std::byte> bytes = random_model("llama", shape, 1);
  return GgufFile::from_bytes(bytes, "random model").value();
}

/// The model, and one sequence that is `depth` tokens deep.
class DeepContext {
 public:
  DeepContext(int depth, int threads)
      : model_(open_model(), Precision::kFast, 32, threads, {16, 1}) {
    std::mt19937 random(2);
    for (const LayerGroups::Group& group : model_.groups.groups) {
      const KvPageLayout& layout = group.layout;
      std::vector<KvPageRef>& refs = refs_.emplace_back();
      const auto pages = static_cast<std::size_t>((depth + 31) / 32);
      slabs_.push_back(AnonymousMemory::allocate(pages * layout.page_bytes()).value());
      auto* halves = reinterpret_cast<std::uint16_t*>(slabs_.back().data());
      // Magnitudes from 1/4 to 1, either sign.
      for (std::size_t i = 0; i < pages * layout.page_bytes() / 2; ++i)
        halves[i] = static_cast<std::uint16_t>((random() & 0x87FFU) + 0x3400U);
      for (std::size_t page = 0; page < pages; ++page) {
        const int first = static_cast<int>(page) * 32;
        refs.push_back({slabs_.back().data() + page * layout.page_bytes(), first,
                        std::min(32, depth - first), layout.format});
      }
    }
    for (std::size_t number = 0; number < refs_.size(); ++number)
      views_.push_back({&model_.groups.groups[number].layout, refs_[number], 0});
    evidence_.resize(views_[0].pages.size());
    slice_.rows = 1;
    slice_.first_position = depth - 1;
    slice_.views = views_;
  }

  /// Milliseconds of a decode step; stride 0 does not probe.
  double step(int stride, int phase) {
    const TokenId token = 7;
    PageProbe probe{-1, stride, phase, evidence_};
    slice_.probe = stride == 0 ? nullptr : &probe;
    const auto begin = std::chrono::steady_clock::now();
    const Status status =
        model_.transformer->forward({std::span(&token, 1), std::span(&slice_, 1)});
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    MEMDECAY_CHECK(status.ok());
    return time.count();
  }

 private:
  LoadedModel model_;
  std::vector<AnonymousMemory> slabs_;
  std::vector<std::vector<KvPageRef>> refs_;
  std::vector<PagedKvView> views_;
  std::vector<PageAttention> evidence_;
  SequenceSlice slice_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void probed_decode(benchmark::State& state) {
  DeepContext context(static_cast<int>(state.range(0)), 2);
  const int stride = static_cast<int>(state.range(1));
  std::vector<double> plain, probed;
  std::vector<std::vector<double>> by_phase(static_cast<std::size_t>(stride));
  context.step(0, 0);
  context.step(stride, 0);
  for (auto _ : state) {
    for (int phase = 0; phase < stride; ++phase) {
      plain.push_back(context.step(0, 0));
      probed.push_back(context.step(stride, phase));
      by_phase[static_cast<std::size_t>(phase)].push_back(probed.back());
    }
  }
  std::vector<double> phases;
  for (const auto& times : by_phase) phases.push_back(median(times));
  state.counters["plain_ms"] = median(plain);
  state.counters["probed_ms"] = median(probed);
  state.counters["ratio"] = median(probed) / median(plain);
  state.counters["worst_phase"] = *std::max_element(phases.begin(), phases.end()) /
                                  *std::min_element(phases.begin(), phases.end());
}
BENCHMARK(probed_decode)
    ->ArgNames({"depth", "stride"})
    ->ArgsProduct({{512, 4096, 16384}, {1, 8, 10}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace memdecay
