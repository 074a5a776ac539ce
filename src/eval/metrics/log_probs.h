// Log-probabilities in 16 bits, as llama-perplexity stores them: docs/formats/kl_base.md.
//
// A record is {float scale, float minimum, uint16 code[n_vocab (padded to even)]}; log p = minimum
// + scale * code. Logits more than 16 below the largest share code 0, so the error is at most 16 /
// 65535 / 2 above that floor. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace memdecay {

/// Log-probabilities at or below this carry no information: codes 0 flatten whatever lies deeper.
inline constexpr float kLogProbFloor = -16.0F;

/// 16-bit words of one record.
std::size_t log_prob_record_words(int vocab_size);

/// Writes the record of `logits` into `record` [log_prob_record_words].
void encode_log_probs(std::span<const float> logits, std::span<std::uint16_t> record);

/// Log-probabilities of a record, [vocab_size].
void decode_log_probs(std::span<const std::uint16_t> record, std::span<float> log_probs);

}  // namespace memdecay
