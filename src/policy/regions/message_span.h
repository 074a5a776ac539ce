// MessageSpan: a piece of one message as the policy sees it: who, what part, which tokens.
//
// The engine makes them while it renders a chat template; nothing here knows templates or models.
// A view: text and token_ends belong to the caller and live through the call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/id.h"
#include "policy/region.h"

namespace memdecay {

enum class Role : std::uint8_t { kSystem, kUser, kAssistant, kTool };
enum class Part : std::uint8_t { kText, kReasoning, kToolCall, kToolResult };

/// Tokens [begin, end) by position.
struct TokenRange {
  Position begin = 0;
  Position end = 0;
  constexpr std::int32_t size() const { return end - begin; }
  friend bool operator==(TokenRange, TokenRange) = default;
};

struct MessageSpan {
  Role role = Role::kUser;
  Part part = Part::kText;
  std::int32_t message = 0;  ///< number of the message in its conversation
  std::string_view text;
  TokenRange tokens;
  /// Where each token ends in text, in bytes; empty where the caller does not know: then the span
  /// is not divided.
  std::span<const std::uint32_t> token_ends;
  /// The client's own word, which overrides every rule.
  std::optional<Region> client_region;
};

}  // namespace memdecay
