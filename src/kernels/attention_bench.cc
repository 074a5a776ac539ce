// Attention over pages: GFLOP/s against the processor's own fp32 peak, and GB/s of keys and values.
//
//   kernels_bench --benchmark_filter='attention|decode_step|fma_peak'
//
// decode: one query token, `layers` copies of the context so that the keys come from where they
// come from in a model (layers = 1: caches, layers = 24: memory at long contexts).
// decode_step: all layers and kv heads of a model's shape, one token, pages of one form or of mixed
// ones, on one or two threads: what a step of decoding spends on attention.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include "kernels/attention_fixture.h"
#include "sys/memory.h"

namespace memdecay {
namespace {

__attribute__((target("avx512f"))) float fma_chains_512(int n) {
  __m512 sum[12];
  for (int i = 0; i < 12; ++i) sum[i] = _mm512_setzero_ps();
  const __m512 x = _mm512_set1_ps(1e-9f);
  for (int j = 0; j < n; ++j) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
      sum[i] = _mm512_fmadd_ps(sum[i], x, x);
      asm volatile("" : "+v"(sum[i]));
    }
  }
  for (int i = 1; i < 12; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx2,fma"))) float fma_chains_256(int n) {
  __m256 sum[12];
  for (int i = 0; i < 12; ++i) sum[i] = _mm256_setzero_ps();
  const __m256 x = _mm256_set1_ps(1e-9f);
  for (int j = 0; j < n; ++j) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
      sum[i] = _mm256_fmadd_ps(sum[i], x, x);
      asm volatile("" : "+x"(sum[i]));
    }
  }
  for (int i = 1; i < 12; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  return _mm256_cvtss_f32(sum[0]);
}

void fma_peak(benchmark::State& state, const KernelTable* table) {
  constexpr int kSteps = 20000;
  const bool wide = std::strcmp(table->name, "avx512") == 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(wide ? fma_chains_512(kSteps) : fma_chains_256(kSteps));
  }
  state.counters["GFLOP/s"] = benchmark::Counter(kSteps * 12.0 * (wide ? 32.0 : 16.0) * 1e-9,
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

/// One (rows x context) item list of one kv head, segment by segment.
class AttentionRun {
 public:
  AttentionRun(const KernelTable& table, int head_dim, int page_tokens, int group, int rows,
               int depth, int layers)
      : table_(table), rows_(rows), group_(group), tokens_(depth + rows) {
    for (int i = 0; i < layers; ++i) {
      kv_.push_back(std::make_unique<PagedKvFixture>(head_dim, page_tokens, KvFormat::kF16, tokens_,
                                                     static_cast<unsigned>(i)));
    }
    const std::size_t stats = static_cast<std::size_t>(rows * group);
    q_ = kv_[0]->random_floats(stats * static_cast<std::size_t>(head_dim), 0.3f);
    for (int row = 0; row < rows; ++row) positions_.push_back(depth + row);
    max_.resize(stats);
    sum_.resize(stats);
    out_.resize(q_.size());
    page_sum_.resize(stats * static_cast<std::size_t>(kAttentionSegmentSlots / page_tokens));
    scratch_ = std::make_unique<AlignedBytes>(
        table.attention_scratch_bytes(kv_[0]->layout(), rows, group));
  }

  /// Query rows go in blocks of 32, as the engine cuts them.
  void run(PagedKvFixture& kv) {
    constexpr int kBlock = 32;
    const KvPageLayout& layout = kv.layout();
    const int per_segment = kAttentionSegmentSlots / layout.page_tokens;
    for (int row = 0; row < rows_; row += kBlock) {
      const int rows = std::min(kBlock, rows_ - row);
      const Position last = positions_[static_cast<std::size_t>(row + rows - 1)];
      for (int page = 0; page < kv.page_count() && page * layout.page_tokens <= last;
           page += per_segment) {
        AttentionArgs args;
        args.layout = &layout;
        args.pages = kv.pages().data() + page;
        args.page_count = std::min(per_segment, kv.page_count() - page);
        args.first_page_number = page;
        args.q = q_.data() + row * group_ * layout.head_dim;
        args.q_stride = group_ * layout.head_dim;
        args.positions = positions_.data() + row;
        args.rows = rows;
        args.group = group_;
        args.max = max_.data();
        args.sum = sum_.data();
        args.out = out_.data();
        args.page_sum = rows_ == 1 ? page_sum_.data() : nullptr;
        args.scratch = scratch_->data();
        table_.attention(args);
      }
    }
    benchmark::ClobberMemory();
  }

  std::vector<std::unique_ptr<PagedKvFixture>>& layers() { return kv_; }

 private:
  const KernelTable& table_;
  int rows_, group_, tokens_;
  std::vector<std::unique_ptr<PagedKvFixture>> kv_;
  std::vector<float> q_, max_, sum_, out_, page_sum_;
  std::vector<Position> positions_;
  std::unique_ptr<AlignedBytes> scratch_;
};

void attention(benchmark::State& state, const KernelTable* table, int group, int head_dim, int rows,
               int depth, int layers, int page_tokens) {
  AttentionRun run(*table, head_dim, page_tokens, group, rows, depth, layers);
  for (auto _ : state) {
    for (auto& kv : run.layers()) run.run(*kv);
  }
  // Visible (query, key) pairs: depth + 1 for the first row, one more for each next.
  const double pairs = static_cast<double>(rows) * (depth + 0.5 * (rows + 1)) * layers;
  state.counters["GFLOP/s"] = benchmark::Counter(pairs * 4e-9 * group * head_dim,
                                                 benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(depth + rows) * layers * 4e-9 * head_dim,
                         benchmark::Counter::kIsIterationInvariantRate);
}

/// What attention of one decode step reads: every layer and kv head of one sequence.
struct ModelShape {
  const char* name;
  int layers, kv_heads, head_dim, group;
};

constexpr ModelShape kModels[] = {{"smollm2", 30, 3, 64, 3},
                                  {"qwen-0.5b", 24, 2, 64, 7},
                                  {"qwen-1.5b", 28, 2, 128, 6},
                                  {"gemma3-270m", 18, 1, 256, 4},
                                  {"one-to-one", 24, 4, 64, 1}};  // no grouping

struct Form {
  const char* name;
  KvFormat format;
  bool mixed;  ///< fp16, int8, k8v4 and int4 in turn, so that no tile has one form
};

constexpr Form kForms[] = {{"fp16", KvFormat::kF16, false},
                           {"int8", KvFormat::kInt8, false},
                           {"k8v4", KvFormat::kK8V4, false},
                           {"int4", KvFormat::kInt4, false},
                           {"mixed", KvFormat::kF16, true}};

/// Pages at random places of one block of memory, all with one page's content. So many sequences
/// take turns that no cache holds them: in a model the weights pass between two visits of a page.
class DecodeStep {
 public:
  DecodeStep(const ModelShape& shape, const Form& form, int depth)
      : layout_{shape.layers, shape.kv_heads, shape.head_dim, 32, KvFormat::kF16},
        group_(shape.group),
        positions_{depth - 1},
        page_count_(depth / 32),
        pages_(page_count_of_all(layout_.in(form.format).page_bytes(), depth / 32)),
        memory_(AnonymousMemory::allocate(pages_.size() * layout_.in(form.format).page_bytes())) {
    std::mt19937 random(1);
    std::vector<std::byte> page(layout_.page_bytes());
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < page.size(); i += 2) {
      const std::uint16_t half = float_to_half(uniform(random));
      std::memcpy(page.data() + i, &half, 2);
    }
    std::vector<std::vector<std::byte>> in_form;
    for (const Form& each : kForms) {
      const KvPageLayout to = layout_.in(each.format);
      in_form.emplace_back(to.page_bytes());
      convert_kv_page(layout_, page.data(), to, in_form.back().data(), 32);
    }
    std::vector<std::size_t> order(pages_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    const std::size_t stride = layout_.in(form.format).page_bytes();
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      const std::size_t number = form.mixed ? i % 4
                                            : static_cast<std::size_t>(form.format) -
                                                  (form.format == KvFormat::kF16 ? 0 : 1);
      KvPageRef& ref = pages_[i];
      ref.base = memory_.value().data() + order[i] * stride;
      ref.first_position = 32 * (static_cast<int>(i) % page_count_);
      ref.filled = 32;
      ref.format = kForms[number].format;
      std::memcpy(ref.base, in_form[number].data(), in_form[number].size());
      if (i < static_cast<std::size_t>(page_count_)) bytes_ += in_form[number].size();
    }
    q_.resize(static_cast<std::size_t>(group_ * shape.head_dim));
    for (float& x : q_) x = 0.1F * uniform(random);
  }

  int sequences() const { return static_cast<int>(pages_.size()) / page_count_; }

  /// The items of one of `threads` threads: every threads-th segment.
  void run(const KernelTable& table, int sequence, int thread, int threads) {
    const int per_segment = kAttentionSegmentSlots / 32;
    const int pages = page_count_;
    const KvPageRef* first = pages_.data() + sequence * pages;
    const std::size_t group = static_cast<std::size_t>(group_);
    std::vector<float> max(group), sum(group), out(q_.size()), page_sum(group * 32);
    AlignedBytes scratch(table.attention_scratch_bytes(layout_, 1, group_));
    AttentionArgs args;
    args.layout = &layout_;
    args.q = q_.data();
    args.positions = positions_;
    args.rows = 1;
    args.group = group_;
    args.max = max.data();
    args.sum = sum.data();
    args.out = out.data();
    args.page_sum = page_sum.data();
    args.scratch = scratch.data();
    int item = 0;
    for (args.layer = 0; args.layer < layout_.layers; ++args.layer) {
      for (args.kv_head = 0; args.kv_head < layout_.kv_heads; ++args.kv_head) {
        for (int page = 0; page < pages; page += per_segment, ++item) {
          if (item % threads != thread) continue;
          args.pages = first + page;
          args.page_count = std::min(per_segment, pages - page);
          args.first_page_number = page;
          table.attention(args);
        }
      }
    }
    benchmark::ClobberMemory();
  }

  std::size_t bytes() const { return bytes_; }

 private:
  static std::size_t page_count_of_all(std::size_t page_bytes, int of_one) {
    constexpr std::size_t kBytes = std::size_t{400} << 20;
    const std::size_t sequence = page_bytes * static_cast<std::size_t>(of_one);
    return (kBytes + sequence - 1) / sequence * static_cast<std::size_t>(of_one);
  }

  KvPageLayout layout_;
  int group_;
  Position positions_[1];
  int page_count_;
  std::vector<KvPageRef> pages_;
  Result<AnonymousMemory> memory_;  ///< huge pages, as the page pool has them
  std::vector<float> q_;
  std::size_t bytes_ = 0;
};

void decode_step(benchmark::State& state, const KernelTable* table, ModelShape shape, Form form,
                 int depth) {
  static std::unique_ptr<DecodeStep> step;  // the threads of one benchmark share it
  if (state.thread_index() == 0) step = std::make_unique<DecodeStep>(shape, form, depth);
  int turn = 0;
  for (auto _ : state) {
    // Google Benchmark divides the time by all threads' iterations. So that many steps are taken in
    // one, each thread a part of each, and both the time and GB/s are of one step.
    for (int i = 0; i < state.threads(); ++i) {
      step->run(*table, turn++ % step->sequences(), state.thread_index(), state.threads());
    }
  }
  if (state.thread_index() == 0) {
    state.counters["GB/s"] = benchmark::Counter(static_cast<double>(step->bytes()) * 1e-9,
                                                benchmark::Counter::kIsIterationInvariantRate);
    step.reset();
  }
}

void add_decode_steps(const KernelTable* table) {
  for (const ModelShape& shape : kModels) {
    for (const int depth : {512, 2048, 4096, 16384}) {
      for (const Form& form : kForms) {
        const std::string title = std::string("decode_step/") + table->name + "/" + shape.name +
                                  "/depth:" + std::to_string(depth) + "/" + form.name;
        for (const int threads : {1, 2}) {
          benchmark::RegisterBenchmark(title.c_str(), decode_step, table, shape, form, depth)
              ->Unit(benchmark::kMicrosecond)
              ->Threads(threads)
              ->UseRealTime();
        }
      }
    }
  }
}

struct Shape {
  int group, head_dim;
};

void add_attention_benchmarks(const KernelTable* table) {
  const std::string name = table->name;
  benchmark::RegisterBenchmark(("fma_peak/" + name).c_str(), fma_peak, table);
  const auto add = [&](const char* kind, Shape shape, int rows, int depth, int layers,
                       int page_tokens) {
    const std::string title =
        std::string("attention/") + name + "/" + kind + "/g" + std::to_string(shape.group) + "x" +
        std::to_string(shape.head_dim) + "/depth:" + std::to_string(depth) +
        "/layers:" + std::to_string(layers) + "/page:" + std::to_string(page_tokens);
    benchmark::RegisterBenchmark(title.c_str(), attention, table, shape.group, shape.head_dim, rows,
                                 depth, layers, page_tokens)
        ->Unit(benchmark::kMicrosecond);
  };
  for (const Shape shape : {Shape{1, 64}, {3, 64}, {4, 256}, {7, 64}, {6, 128}, {8, 128}}) {
    for (const int depth : {512, 4096, 16384, 65536}) add("decode", shape, 1, depth, 1, 32);
    add("decode", shape, 1, 16384, 24, 32);
  }
  for (const int page_tokens : {16, 64}) add("decode", {3, 64}, 1, 4096, 1, page_tokens);
  for (const Shape shape : {Shape{3, 64}, {7, 64}, {6, 128}, {4, 256}}) {
    for (const int depth : {0, 4096, 16384}) add("prefill", shape, 512, depth, 1, 32);
  }
}

const bool kRegistered = [] {
  for (const KernelTable* table : supported_kernels()) {
    if (table == &scalar_kernels()) continue;
    add_attention_benchmarks(table);
    add_decode_steps(table);
  }
  return true;
}();

}  // namespace
}  // namespace memdecay
