#include "model/sampler/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace memdecay {
namespace {

// First guess at how many candidates hold the top_p mass when top_k sets no limit.
constexpr int kFirstCandidates = 128;

}  // namespace

Status SamplingOptions::validate() const {
  const auto refuse = [](const char* field, auto value, const char* range) {
    return make_status(StatusCode::kInvalidArgument, "{} is {}, but must be {}", field, value,
                       range);
  };
  if (!std::isfinite(temperature)) return refuse("temperature", temperature, "a finite number");
  if (top_k < 0) return refuse("top_k", top_k, "0 (no limit) or more");
  if (!(top_p > 0.0F && top_p <= 1.0F)) return refuse("top_p", top_p, "above 0 and at most 1");
  if (!(min_p >= 0.0F && min_p <= 1.0F)) return refuse("min_p", min_p, "between 0 and 1");
  return Status();
}

Sampler::Sampler(const SamplingOptions& options, const KernelTable& kernels)
    : options_(options), kernels_(kernels), random_(options.seed) {
  MEMDECAY_CHECK(options.validate().ok());
}

TokenId Sampler::sample(std::span<const float> logits) {
  MEMDECAY_CHECK(!logits.empty());
  if (options_.temperature <= 0.0F) return largest(logits);
  const bool truncates = options_.top_k > 0 || options_.top_p < 1.0F || options_.min_p > 0.0F;
  if (!truncates) return draw_from_all(logits);
  double target = uniform() * choose_candidates(logits);
  for (std::size_t i = 0; i < probabilities_.size(); ++i) {
    target -= probabilities_[i];
    if (target < 0.0) return candidates_[i];
  }
  return candidates_.front();  // rounding left a sliver of mass, or the logits were not finite
}

TokenId Sampler::largest(std::span<const float> logits) {
  take_top(logits, 1);
  return candidates_[0];
}

void Sampler::take_top(std::span<const float> logits, int count) {
  candidates_.resize(static_cast<std::size_t>(count));
  values_.resize(static_cast<std::size_t>(count));
  kernels_.top_k(
      {logits.data(), static_cast<int>(logits.size()), count, candidates_.data(), values_.data()});
}

double Sampler::choose_candidates(std::span<const float> logits) {
  const int size = static_cast<int>(logits.size());
  const double limit = options_.top_p;
  int count =
      options_.top_k > 0 ? std::min(options_.top_k, size) : std::min(kFirstCandidates, size);
  take_top(logits, count);
  // Truncation looks at the distribution at temperature 1, as llama.cpp's chain does: temperature
  // comes last.
  const float max = values_[0];
  double total = 0.0;
  if (options_.top_k > 0) {
    for (const float value : values_) total += std::exp(static_cast<double>(value - max));
  } else {
    total = kernels_.sum_exp(logits.data(), size, max);
  }
  const double floor = options_.min_p;
  for (;;) {
    double mass = 0.0;
    std::size_t kept = 0;
    while (kept < values_.size()) {
      const double relative = std::exp(static_cast<double>(values_[kept] - max));
      if (kept > 0 && (mass >= limit * total || relative < floor)) break;
      mass += relative;
      ++kept;
    }
    if (kept < values_.size() || count == size || options_.top_k > 0) {
      candidates_.resize(std::max<std::size_t>(kept, 1));
      break;
    }
    count = std::min(size, count * 4);
    take_top(logits, count);
  }
  probabilities_.clear();
  double sum = 0.0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    probabilities_.push_back(
        std::exp(static_cast<double>((values_[i] - max) / options_.temperature)));
    sum += probabilities_.back();
  }
  return sum;
}

TokenId Sampler::draw_from_all(std::span<const float> logits) {
  const float max = kernels_.max_value(logits.data(), static_cast<int>(logits.size()));
  const auto weight = [&](float value) {
    return std::exp(static_cast<double>((value - max) / options_.temperature));
  };
  double total = 0.0;
  for (const float value : logits) total += weight(value);
  double target = uniform() * total;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    target -= weight(logits[i]);
    if (target < 0.0) return static_cast<TokenId>(i);
  }
  return largest(logits);
}

double Sampler::uniform() {
  return static_cast<double>(random_() >> 11) * 0x1.0p-53;  // 53 random bits, [0, 1)
}

}  // namespace memdecay
