// MissReport: why a prompt was not found whole, for people: which token, message and text parted,
// and what kind of difference it is. Made from a PrefixDifference (the tree's token ids) and the
// caller's knowledge of its prompt. Plain values; any thread.
//
// With Audience::kTenant nothing in it comes from another tenant. Texts are model bytes, cut at
// token borders: not always valid UTF-8.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/id.h"
#include "kv/prefix/miss_reason.h"
#include "kv/prefix/prefix_difference.h"

namespace memdecay {

/// Where a token of a prompt comes from.
struct TokenOrigin {
  std::int32_t message = -1;  ///< number in the conversation; -1: of no message
  std::string_view role;
  bool in_tools = false;  ///< part of the tool definitions
};

/// What the owner of a prompt knows about its tokens.
class PromptText {
 public:
  virtual ~PromptText() = default;
  /// The bytes that these tokens stand for.
  virtual std::string text(std::span<const TokenId> tokens) const = 0;
  virtual TokenOrigin origin(Position position) const = 0;
};

struct MissReport {
  MissKind kind = MissKind::kHit;
  Position planned_tokens = 0;
  Position matched_tokens = 0;      ///< found, slots to be copied included
  Position first_missed_token = 0;  ///< = planned_tokens for a hit
  std::int32_t message = -1;        ///< of the first missed token
  std::string role;
  /// With a difference in tokens: what both share before it, and how each goes on.
  std::string before, remembered, planned;

  /// "clock: 35 of 80 tokens were found; from token 35 (message 1, user) a time or date differs:
  /// after ... comes ... where ... is remembered". One line.
  std::string sentence() const;
};

MissReport explain_miss(const PrefixDifference& difference, Position planned_tokens,
                        const PromptText& prompt);

}  // namespace memdecay
