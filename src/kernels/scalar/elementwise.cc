// The truth of the small kernels: libm and double.
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/scalar/table.h"
#include "kernels/top_k_heap.h"

namespace memdecay::scalar {
namespace {

void rms_norm(const RmsNormArgs& args) {
  double squares = 0;
  for (int i = 0; i < args.n; ++i) {
    squares += static_cast<double>(args.x[i]) * static_cast<double>(args.x[i]);
  }
  const double scale = 1.0 / std::sqrt(squares / args.n + static_cast<double>(args.epsilon));
  for (int i = 0; i < args.n; ++i) {
    args.out[i] = static_cast<float>(static_cast<double>(args.x[i]) * scale *
                                     static_cast<double>(args.weight[i]));
  }
}

void rope_head(const RopeArgs& args, float* x) {
  const bool halves = args.pairing == RopePairing::kHalves;
  const double scale = static_cast<double>(args.scale);
  for (int i = 0; i < args.pairs; ++i) {
    float& first = x[halves ? i : 2 * i];
    float& second = x[halves ? i + args.pairs : 2 * i + 1];
    const double a = static_cast<double>(first);
    const double b = static_cast<double>(second);
    const double c = static_cast<double>(args.cos[i]);
    const double s = static_cast<double>(args.sin[i]);
    first = static_cast<float>((a * c - b * s) * scale);
    second = static_cast<float>((a * s + b * c) * scale);
  }
  for (int i = 2 * args.pairs; i < args.head_dim; ++i) x[i] *= args.scale;
}

void rope(const RopeArgs& args) {
  for (int head = 0; head < args.heads; ++head) {
    rope_head(args, args.x + static_cast<std::ptrdiff_t>(head) * args.head_dim);
  }
}

void swiglu(const GatedArgs& args) {
  for (std::size_t i = 0; i < args.n; ++i) {
    const double gate = static_cast<double>(args.gate[i]);
    const double silu = gate / (1.0 + std::exp(-gate));
    args.out[i] = static_cast<float>(silu * static_cast<double>(args.up[i]));
  }
}

/// x * (1 + tanh(u)) / 2 written as x / (1 + e^-2u), which keeps its digits in both tails.
void geglu(const GatedArgs& args) {
  for (std::size_t i = 0; i < args.n; ++i) {
    const double gate = static_cast<double>(args.gate[i]);
    const double u = std::sqrt(2.0 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate);
    const double gelu = gate / (1.0 + std::exp(-2.0 * u));
    args.out[i] = static_cast<float>(gelu * static_cast<double>(args.up[i]));
  }
}

float max_value(const float* x, int n) {
  float max = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < n; ++i) {
    if (x[i] > max) max = x[i];
  }
  return max;
}

double sum_exp(const float* x, int n, float max) {
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double difference = static_cast<double>(x[i]) - static_cast<double>(max);
    if (difference == difference) sum += std::exp(difference);
  }
  return sum;
}

float read_streams(const float* x, std::size_t n) {
  float max = 0;
  for (std::size_t i = 0; i < n; ++i) max = std::max(max, x[i]);
  return max;
}

void top_k(const TopKArgs& args) {
  TopKHeap heap(args.index, args.value, args.k);
  for (int i = 0; i < args.n; ++i) heap.offer(args.x[i], i);
  heap.sort();
}

}  // namespace

void add_elementwise(KernelTable& table) {
  table.rms_norm = rms_norm;
  table.rope = rope;
  table.swiglu = swiglu;
  table.geglu = geglu;
  table.max_value = max_value;
  table.read_streams = read_streams;
  table.sum_exp = sum_exp;
  table.top_k = top_k;
}

}  // namespace memdecay::scalar
