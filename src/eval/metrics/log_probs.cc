#include "eval/metrics/log_probs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace memdecay {
namespace {

constexpr std::size_t kHeaderWords = 4;  // two floats
constexpr float kDepth = 16.0F;          // how far below the largest logit codes reach
constexpr float kLargestCode = 65535.0F;

}  // namespace

std::size_t log_prob_record_words(int vocab_size) {
  return 2 * ((static_cast<std::size_t>(vocab_size) + 1) / 2) + kHeaderWords;
}

void encode_log_probs(std::span<const float> logits, std::span<std::uint16_t> record) {
  MEMDECAY_CHECK(record.size() == log_prob_record_words(static_cast<int>(logits.size())));
  const auto [smallest, largest] = std::minmax_element(logits.begin(), logits.end());
  const float max = *largest;
  const float min = std::max(*smallest, max - kDepth);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - max));
  const float header[2] = {(max - min) / kLargestCode,
                           min - max - static_cast<float>(std::log(sum))};
  std::memcpy(record.data(), header, sizeof header);
  const float inverse = header[0] > 0.0F ? 1.0F / header[0] : 0.0F;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float code = logits[i] > min ? std::nearbyint(inverse * (logits[i] - min)) : 0.0F;
    record[kHeaderWords + i] = static_cast<std::uint16_t>(std::min(code, kLargestCode));
  }
  std::fill(record.begin() + static_cast<std::ptrdiff_t>(kHeaderWords + logits.size()),
            record.end(), std::uint16_t{0});
}

void decode_log_probs(std::span<const std::uint16_t> record, std::span<float> log_probs) {
  MEMDECAY_CHECK(record.size() == log_prob_record_words(static_cast<int>(log_probs.size())));
  float header[2];
  std::memcpy(header, record.data(), sizeof header);
  for (std::size_t i = 0; i < log_probs.size(); ++i) {
    log_probs[i] = header[1] + header[0] * static_cast<float>(record[kHeaderWords + i]);
  }
}

}  // namespace memdecay
