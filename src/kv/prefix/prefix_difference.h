// PrefixDifference: where a planned prompt parts from the closest sequence that a PrefixTree
// remembers. Token ids only; miss_report.h adds texts and the kind. Plain values.
//
// Invariant: matched_tokens <= equal_tokens <= planned tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/id.h"

namespace memdecay {

struct PrefixDifference {
  enum class Cause : std::uint8_t {
    kNone,          ///< every planned token matched
    kNewText,       ///< what is remembered ends here; the rest was never seen
    kNoEntry,       ///< nothing in this scope begins with the first token
    kEvicted,       ///< the next page was remembered and evicted, or its window's pages are gone
    kOtherBorders,  ///< the next tokens are remembered, but cut into other pages
    kDiffers,       ///< a remembered sequence goes on with other tokens
    kShortPage,     ///< a short page ends what windows can share; its caller says so
    kBudget,        ///< the session's own budget holds no more of it; its caller says so
    kOtherSalt,     ///< another tenant has more of these tokens; for the operator only
  };
  /// Who will read it. Only the operator learns what other tenants have.
  enum class Audience : std::uint8_t { kTenant, kOperator };
  static constexpr std::size_t kContextTokens = 24;

  Cause cause = Cause::kNone;
  Position matched_tokens = 0;  ///< what the lookup could use, the partial page included
  Position equal_tokens = 0;    ///< what the closest remembered sequence shares with the plan
  /// At most kContextTokens each, with kDiffers: the shared tokens before the difference, then how
  /// the remembered sequence and the plan go on.
  std::vector<TokenId> before;
  std::vector<TokenId> remembered;
  std::vector<TokenId> planned;
};

/// kDiffers: tokens that were to continue others go on differently from position `at`. REQUIRES:
/// both are longer than that.
PrefixDifference difference_at(std::span<const TokenId> remembered,
                               std::span<const TokenId> planned, Position at);

}  // namespace memdecay
