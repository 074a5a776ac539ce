// The small kernels over vectors: a main loop and a tail through a zero-padded copy, so every
// element sees the same operations wherever it stands.
//
// Included inside a target region.
#pragma once

#include "kernels/generic/exp2.h"

namespace memdecay {
namespace {

/// Up to one vector of values from x, zeros behind them.
template <typename L>
MEMDECAY_INLINE typename L::Floats load_some(const float* x, int n, float fill = 0.0f) {
  if (n >= L::kWidth) return L::load(x);
  alignas(64) float lanes[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) lanes[i] = i < n ? x[i] : fill;
  return L::load(lanes);
}

template <typename L>
MEMDECAY_INLINE void store_some(float* to, int n, typename L::Floats x) {
  if (n >= L::kWidth) {
    L::store(to, x);
    return;
  }
  alignas(64) float lanes[L::kWidth];
  L::store(lanes, x);
  for (int i = 0; i < n; ++i) to[i] = lanes[i];
}

/// Sum of the lanes, as a tree of fixed shape.
template <typename L>
MEMDECAY_INLINE float sum_lanes(typename L::Floats x) {
  alignas(64) float lanes[L::kWidth];
  L::store(lanes, x);
  for (int half = L::kWidth / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <typename L>
void rms_norm(const RmsNormArgs& args) {
  constexpr int kStep = 4 * L::kWidth;
  typename L::Floats squares[4] = {L::zero(), L::zero(), L::zero(), L::zero()};
  int i = 0;
  for (; i + kStep <= args.n; i += kStep) {
    MEMDECAY_UNROLL
    for (int j = 0; j < 4; ++j) {
      const typename L::Floats x = L::load(args.x + i + j * L::kWidth);
      squares[j] = L::fma(x, x, squares[j]);
    }
  }
  for (int j = 0; i < args.n; i += L::kWidth, ++j) {
    const typename L::Floats x = load_some<L>(args.x + i, args.n - i);
    squares[j] = L::fma(x, x, squares[j]);
  }
  const float sum =
      sum_lanes<L>(L::add(L::add(squares[0], squares[1]), L::add(squares[2], squares[3])));
  const float scale = 1.0f / __builtin_sqrtf(sum / static_cast<float>(args.n) + args.epsilon);
  for (i = 0; i < args.n; i += L::kWidth) {
    const int n = args.n - i;
    const typename L::Floats x = L::mul(load_some<L>(args.x + i, n), L::set(scale));
    store_some<L>(args.out + i, n, L::mul(x, load_some<L>(args.weight + i, n)));
  }
}

template <typename L>
void rope_halves(const RopeArgs& args, float* x) {
  const typename L::Floats scale = L::set(args.scale);
  for (int i = 0; i < args.pairs; i += L::kWidth) {
    const int n = args.pairs - i;
    const typename L::Floats c = load_some<L>(args.cos + i, n);
    const typename L::Floats s = load_some<L>(args.sin + i, n);
    const typename L::Floats a = load_some<L>(x + i, n);
    const typename L::Floats b = load_some<L>(x + args.pairs + i, n);
    const typename L::Floats first = L::fma(a, c, L::sub(L::zero(), L::mul(b, s)));
    const typename L::Floats second = L::fma(a, s, L::mul(b, c));
    store_some<L>(x + i, n, L::mul(first, scale));
    store_some<L>(x + args.pairs + i, n, L::mul(second, scale));
  }
}

template <typename L>
void rope_interleaved(const RopeArgs& args, float* x) {
  const typename L::Floats scale = L::set(args.scale);
  for (int i = 0; i < args.pairs; i += L::kWidth) {
    const typename L::Floats c = load_some<L>(args.cos + i, args.pairs - i);
    const typename L::Floats s = load_some<L>(args.sin + i, args.pairs - i);
    for (int half = 0; half < 2; ++half) {
      float* pair = x + 2 * i + half * L::kWidth;
      const int n = static_cast<int>(x + 2 * args.pairs - pair);
      if (n <= 0) break;
      const typename L::Floats ab = load_some<L>(pair, n);
      const typename L::Floats crossed = L::mul(L::swap_pairs(ab), L::repeat_pairs(s, half));
      const typename L::Floats turned = L::fma_alternate(ab, L::repeat_pairs(c, half), crossed);
      store_some<L>(pair, n, L::mul(turned, scale));
    }
  }
}

template <typename L>
void rope(const RopeArgs& args) {
  for (int head = 0; head < args.heads; ++head) {
    float* x = args.x + static_cast<std::ptrdiff_t>(head) * args.head_dim;
    if (args.pairing == RopePairing::kHalves) {
      rope_halves<L>(args, x);
    } else {
      rope_interleaved<L>(args, x);
    }
    for (int i = 2 * args.pairs; i < args.head_dim; ++i) x[i] *= args.scale;
  }
}

/// x / (1 + e^-t): silu for t = x; gelu in its tanh form for t = 2 sqrt(2/pi) (x + 0.044715 x^3).
template <typename L>
MEMDECAY_INLINE typename L::Floats gate_by(typename L::Floats x, typename L::Floats t) {
  const typename L::Floats e = exp_clamped<L>(L::sub(L::zero(), t));
  return L::div(x, L::add(L::set(1.0f), e));
}

template <typename L>
MEMDECAY_INLINE typename L::Floats silu(typename L::Floats x) {
  return gate_by<L>(x, x);
}

template <typename L>
MEMDECAY_INLINE typename L::Floats gelu(typename L::Floats x) {
  constexpr float kLinear = 1.5957691216057308f;  // 2 sqrt(2 / pi)
  constexpr float kCubic = 0.07135481282774536f;  // 0.044715 times that
  const typename L::Floats slope = L::fma(L::mul(x, x), L::set(kCubic), L::set(kLinear));
  return gate_by<L>(x, L::mul(x, slope));
}

template <typename L, typename L::Floats (*kActivation)(typename L::Floats)>
void gated(const GatedArgs& args) {
  for (std::size_t i = 0; i < args.n; i += L::kWidth) {
    const int n = static_cast<int>(std::min<std::size_t>(args.n - i, L::kWidth));
    const typename L::Floats gate = kActivation(load_some<L>(args.gate + i, n));
    store_some<L>(args.out + i, n, L::mul(gate, load_some<L>(args.up + i, n)));
  }
}

template <typename L>
float max_value(const float* x, int n) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  typename L::Floats max[4];
  MEMDECAY_UNROLL
  for (int j = 0; j < 4; ++j) max[j] = L::set(kMinusInfinity);
  int i = 0;
  for (; i + 4 * L::kWidth <= n; i += 4 * L::kWidth) {
    MEMDECAY_UNROLL
    for (int j = 0; j < 4; ++j) max[j] = L::max(L::load(x + i + j * L::kWidth), max[j]);
  }
  for (; i < n; i += L::kWidth) max[0] = L::max(load_some<L>(x + i, n - i, kMinusInfinity), max[0]);
  return L::max_lane(L::max(L::max(max[0], max[1]), L::max(max[2], max[3])));
}

/// The largest of n floats, read as the matrix-vector kernels read weights: in four streams,
/// prefetched 4 KiB ahead.
template <typename L>
float read_streams(const float* x, std::size_t n) {
  constexpr std::size_t kStreams = 4, kLine = 16, kAhead = 1024;  // in floats
  const std::size_t length = n / kStreams / kLine * kLine;
  typename L::Floats max[kStreams];
  MEMDECAY_UNROLL
  for (std::size_t s = 0; s < kStreams; ++s) max[s] = L::zero();
  for (std::size_t i = 0; i < length; i += kLine) {
    MEMDECAY_UNROLL
    for (std::size_t s = 0; s < kStreams; ++s) {
      const float* line = x + s * length + i;
      __builtin_prefetch(line + kAhead);
      MEMDECAY_UNROLL
      for (std::size_t j = 0; j < kLine; j += L::kWidth) max[s] = L::max(L::load(line + j), max[s]);
    }
  }
  return L::max_lane(L::max(L::max(max[0], max[1]), L::max(max[2], max[3])));
}

/// Runs of 64 vectors are added as floats, the runs as doubles.
template <typename L>
double sum_exp(const float* x, int n, float max) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  constexpr int kRun = 64 * L::kWidth;
  double total = 0;
  for (int run = 0; run < n; run += kRun) {
    typename L::Floats sum[2] = {L::zero(), L::zero()};
    const int end = std::min(run + kRun, n);
    for (int i = run, j = 0; i < end; i += L::kWidth, j ^= 1) {
      const typename L::Floats difference =
          L::sub(load_some<L>(x + i, end - i, kMinusInfinity), L::set(max));
      const typename L::Floats weight = exp_clamped<L>(difference);
      sum[j] = L::add(sum[j], L::zero_unless_above(weight, difference, -87.0f));
    }
    total += static_cast<double>(sum_lanes<L>(L::add(sum[0], sum[1])));
  }
  return total;
}

template <typename L>
void top_k(const TopKArgs& args) {
  TopKHeap heap(args.index, args.value, args.k);
  int i = 0;
  for (; i < args.n && !heap.full(); ++i) heap.offer(args.x[i], i);
  typename L::Floats threshold = L::set(heap.threshold());
  for (; i + L::kWidth <= args.n; i += L::kWidth) {
    unsigned candidates = L::above(L::load(args.x + i), threshold);
    if (candidates == 0) continue;
    for (; candidates != 0; candidates &= candidates - 1) {
      const int at = i + __builtin_ctz(candidates);
      heap.offer(args.x[at], at);
    }
    threshold = L::set(heap.threshold());
  }
  for (; i < args.n; ++i) heap.offer(args.x[i], i);
  heap.sort();
}

template <typename L>
void fill_elementwise(KernelTable& table) {
  table.rms_norm = rms_norm<L>;
  table.rope = rope<L>;
  table.swiglu = gated<L, silu<L>>;
  table.geglu = gated<L, gelu<L>>;
  table.max_value = max_value<L>;
  table.read_streams = read_streams<L>;
  table.sum_exp = sum_exp<L>;
  table.top_k = top_k<L>;
}

}  // namespace
}  // namespace memdecay
