// Exact values: the parts of a text that lose their worth when a single character is wrong.
//
// Identifiers (HAT170, user_id, a@b.org), numbers and dates, paths and addresses, hashes, quoted
// strings, JSON leaves (values, not keys). Found by one pass over the bytes: a rule of thumb
// without a language, tuned to miss little; a false mark costs a little room, a missed one a wrong
// argument. It marks; memdecay_policy.h decides what a mark is worth.
// Any bytes are accepted, UTF-8 or not; nothing fails. Pure functions, any thread. O(bytes).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace memdecay {

enum class ExactKind : std::uint8_t { kNumber, kIdentifier, kPath, kHash, kQuoted, kJsonLeaf };

/// Bytes [begin, end) of the text. Quotes are part of their string.
struct ExactValue {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  ExactKind kind = ExactKind::kNumber;
  friend bool operator==(const ExactValue&, const ExactValue&) = default;
};

/// In order, not overlapping, none empty. REQUIRES: text shorter than 4 GiB.
std::vector<ExactValue> find_exact_values(std::string_view text);

/// One byte a token: 1 where the token shares a byte with a value. Token i is bytes
/// [token_ends[i-1], token_ends[i]) of the text, the first from 0. REQUIRES: ends do not fall.
std::vector<std::uint8_t> mark_exact_tokens(std::span<const ExactValue> values,
                                            std::span<const std::uint32_t> token_ends);

/// Share of marked tokens in [0, 1]; 0 for none.
float exact_share(std::span<const std::uint8_t> marks);

}  // namespace memdecay
