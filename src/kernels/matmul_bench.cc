// Speed of matmul, per table and weight type, beside the machine's own limits in the same process.
//
//   gemv_dram/...   one column, weights far larger than the caches: bytes per second
//   gemv_cache/...  one column, weights of 1 MiB
//   batch/...       2, 4, 8 columns, weights in memory
//   gemm/...        512 columns: operations per second (2 per multiply-add)
//   peak_...        reading memory; integer and float multiply-adds from registers
// Threads share the panels as workers of the engine do.
#include <benchmark/benchmark.h>

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "kernels/kernel_table.h"
#include "kernels/matmul_testing.h"

#include "kernels/target_avx512.h"

namespace memdecay {
namespace {

constexpr int kChains = 12;

void int8_peak_avx512(int rounds) {
  __m512i acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm512_set1_epi32(i);
  __m512i x = _mm512_set1_epi8(3);
  for (int r = 0; r < rounds; ++r) {
    asm volatile("" : "+v"(x));  // a fresh operand, kept in its register
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) acc[i] = _mm512_dpbusd_epi32(acc[i], x, x);
  }
  for (int i = 0; i < kChains; ++i) benchmark::DoNotOptimize(acc[i]);
}

void float_peak_avx512(int rounds) {
  __m512 acc[kChains];
  for (int i = 0; i < kChains; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512 x = _mm512_set1_ps(1e-3f);
  for (int r = 0; r < rounds; ++r) {
    asm volatile("" : "+v"(x));
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) acc[i] = _mm512_fmadd_ps(x, x, acc[i]);
  }
  for (int i = 0; i < kChains; ++i) benchmark::DoNotOptimize(acc[i]);
}

}  // namespace
}  // namespace memdecay

#include "kernels/target_end.h"

#include "kernels/target_avx2.h"

namespace memdecay {
namespace {

/// maddubs + madd + add per 32 products, the plain int8 step of AVX2.
void int8_peak_avx2(int rounds) {
  __m256i acc[8];
  for (int i = 0; i < 8; ++i) acc[i] = _mm256_set1_epi32(i);
  __m256i x = _mm256_set1_epi8(3);
  const __m256i one = _mm256_set1_epi16(1);
  for (int r = 0; r < rounds; ++r) {
    asm volatile("" : "+x"(x));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      __m256i pairs = _mm256_maddubs_epi16(x, x);
      asm volatile("" : "+x"(pairs));
      acc[i] = _mm256_add_epi32(acc[i], _mm256_madd_epi16(pairs, one));
    }
  }
  for (int i = 0; i < 8; ++i) benchmark::DoNotOptimize(acc[i]);
}

/// Sum of 64-byte lines at `count` bytes.
void read_memory(const std::byte* p, std::size_t count) {
  __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                    _mm256_setzero_si256()};
  const std::size_t quarter = count / 4;
  for (std::size_t i = 0; i < quarter; i += 64) {
#pragma GCC unroll 4
    for (std::size_t s = 0; s < 4; ++s) {  // four streams, as the kernels have
      const std::byte* at = p + s * quarter + i;
      sum[s] = _mm256_add_epi64(
          sum[s], _mm256_add_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(at)),
                                   _mm256_load_si256(reinterpret_cast<const __m256i*>(at + 32))));
    }
  }
  benchmark::DoNotOptimize(sum);
}

}  // namespace
}  // namespace memdecay

#include "kernels/target_end.h"

namespace memdecay {
namespace {

constexpr std::size_t kDramBytes = std::size_t{640} << 20;  // beyond the largest L3

/// Memory in huge pages, as the engine keeps its weights.
std::byte* big_memory() {
  static std::byte* memory = [] {
    void* p = mmap(nullptr, kDramBytes + (2u << 20), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto address = (reinterpret_cast<std::uintptr_t>(p) + (2u << 20) - 1) >> 21 << 21;
    auto* aligned = reinterpret_cast<std::byte*>(address);
    madvise(aligned, kDramBytes, MADV_HUGEPAGE);
    std::memset(aligned, 0x11, kDramBytes);
    return aligned;
  }();
  return memory;
}

/// A matrix of about `bytes` bytes in big_memory(): one random group of panels over and over.
PanelMatrix big_matrix(WeightType type, int k, std::size_t bytes) {
  const std::size_t panel = panel_bytes(type, k);
  const TestMatrix pattern(type, 64, k, test_weights(type, 64, k, -1, 1));
  const std::size_t groups = std::max<std::size_t>(1, bytes / (4 * panel));
  std::byte* memory = big_memory();
  for (std::size_t g = 0; g < groups; ++g) {
    std::memcpy(memory + g * 4 * panel, pattern.panels.data(), 4 * panel);
  }
  return {type, static_cast<int>(groups) * 64, k, memory, panel};
}

/// What the threads of one benchmark share; thread 0 makes it before they start.
struct Setup {
  std::unique_ptr<TestActivations> activations;
  PanelMatrix matrix;
  std::vector<float> out;
};
Setup setup;

void run_matmul(benchmark::State& state, const KernelTable& table, WeightType type, int k, int cols,
                std::size_t bytes, bool count_bytes) {
  if (state.thread_index() == 0) {
    setup.matrix = big_matrix(type, k, bytes);
    setup.activations =
        std::make_unique<TestActivations>(table, cols, k, test_activations(cols, k, 2));
    setup.out.assign(static_cast<std::size_t>(setup.matrix.rows) * static_cast<std::size_t>(cols),
                     0);
  }
  bool first = true;
  MatMulArgs args;
  for (auto _ : state) {  // the first entry waits for thread 0
    if (first) {
      args.weights = &setup.matrix;
      args.quantized = setup.activations->quantized;
      args.x = setup.activations->x.data();
      args.ld_x = k;
      args.col_end = cols;
      args.out = setup.out.data();
      args.ld_out = setup.matrix.rows;
      const int panels = setup.matrix.panel_count();
      args.panel_begin = panels * state.thread_index() / state.threads();
      args.panel_end = panels * (state.thread_index() + 1) / state.threads();
      first = false;
    }
    table.matmul(args);
  }
  const double panels = args.panel_end - args.panel_begin;
  const double per_call = count_bytes ? panels * static_cast<double>(setup.matrix.panel_bytes)
                                      : panels * 32.0 * k * cols;
  state.counters[count_bytes ? "bytes" : "ops"] =
      benchmark::Counter(per_call * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}

void run_peak(benchmark::State& state, void (*probe)(int), double ops_per_round) {
  for (auto _ : state) probe(100000);
  state.counters["ops"] =
      benchmark::Counter(ops_per_round * 1e5 * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}

void run_read(benchmark::State& state) {
  if (state.thread_index() == 0) big_memory();
  for (auto _ : state) {
    const auto share = kDramBytes / static_cast<std::size_t>(state.threads());
    read_memory(big_memory() + share * static_cast<std::size_t>(state.thread_index()), share);
  }
  state.counters["bytes"] = benchmark::Counter(
      static_cast<double>(kDramBytes) / state.threads() * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}

void run_quantize(benchmark::State& state, const KernelTable& table) {
  constexpr int kK = 4096;
  const TestActivations activations(table, 1, kK, test_activations(1, kK, 2));
  for (auto _ : state) {
    table.quantize_activations({activations.x.data(), kK, 0, 1, activations.quantized});
  }
  state.SetItemsProcessed(state.iterations() * kK);
}

void run_repack(benchmark::State& state, WeightType type) {
  constexpr int kRows = 64, kK = 4096;
  const std::vector<std::byte> source = test_weights(type, kRows, kK, -1, 1);
  AlignedBytes out(panel_bytes(type, kK));
  int panel = 0;
  for (auto _ : state) {
    repack_panel(type, kRows, kK, source, panel, {out.data(), out.size()});
    panel = (panel + 1) % 4;
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(16 * weight_row_bytes(type, kK)));
}

void run_dequantize(benchmark::State& state, WeightType type) {
  constexpr int kK = 4096;
  const std::vector<std::byte> source = test_weights(type, 1, kK, -1, 1);
  std::vector<float> out(kK);
  for (auto _ : state) dequantize_weights(type, source, out);
  state.SetItemsProcessed(state.iterations() * kK);
}

template <typename Function>
void add(const std::string& name, bool threaded, Function function) {
  auto* made = benchmark::RegisterBenchmark(name.c_str(), function);
  made->UseRealTime()->MinTime(0.2);
  if (threaded) made->Threads(1)->Threads(2);
}

void add_matmuls(const KernelTable& table, const WeightTypeTraits& traits) {
  const std::string suffix = std::string(table.name) + "/" + std::string(traits.name);
  const WeightType type = traits.type;
  constexpr std::size_t kMiB = 1u << 20;
  const auto one = [&table, type](int k, int cols, std::size_t bytes, bool count_bytes) {
    return [&table, type, k, cols, bytes, count_bytes](benchmark::State& state) {
      run_matmul(state, table, type, k, cols, bytes, count_bytes);
    };
  };
  add("gemv_dram/" + suffix, true, one(2048, 1, kDramBytes, true));
  add("gemv_cache/" + suffix, true, one(2048, 1, kMiB, true));
  for (const int cols : {2, 4, 8}) {
    add("batch/" + suffix + "/" + std::to_string(cols), true, one(2048, cols, 320 * kMiB, true));
  }
  for (const int k : {1024, 4864}) {
    const int usable = k / traits.block_values * traits.block_values;
    add("gemm/" + suffix + "/" + std::to_string(usable), true, one(usable, 512, kMiB, false));
  }
}

void register_all() {
  add("peak_read", true, run_read);
  if (supported_kernels().size() > 2) {
    add("peak_int8/avx512", true,
        [](benchmark::State& state) { run_peak(state, int8_peak_avx512, kChains * 128.0); });
    add("peak_float/avx512", true,
        [](benchmark::State& state) { run_peak(state, float_peak_avx512, kChains * 32.0); });
  }
  if (supported_kernels().size() > 1) {
    add("peak_int8/avx2", true,
        [](benchmark::State& state) { run_peak(state, int8_peak_avx2, 8 * 64.0); });
  }
  for (const KernelTable* table : supported_kernels()) {
    if (table == &scalar_kernels()) continue;
    add("quantize/" + std::string(table->name), false,
        [table](benchmark::State& state) { run_quantize(state, *table); });
    for (const WeightTypeTraits& traits : weight_types()) add_matmuls(*table, traits);
  }
  for (const WeightTypeTraits& traits : weight_types()) {
    const WeightType type = traits.type;
    add("repack/" + std::string(traits.name), false,
        [type](benchmark::State& state) { run_repack(state, type); });
    add("dequantize/" + std::string(traits.name), false,
        [type](benchmark::State& state) { run_dequantize(state, type); });
  }
}

[[maybe_unused]] const bool kRegistered = (register_all(), true);

}  // namespace
}  // namespace memdecay
