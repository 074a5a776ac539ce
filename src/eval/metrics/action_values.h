// Action values: where, in a rendered conversation, an assistant's turn names its tool, the
// arguments' keys and their values, and which values it had to remember.
//
// Calls are found by what the message says (names, keys and values in the order of the call,
// plain or JSON-escaped) inside the bytes that the message was rendered to, so that every chat
// template works; text that was written as a command is found by its form (plain_action.h).
//
// kRecalled marks what `value_match` counts: a value of the call that was said in an earlier
// message, at its first place in this turn (in the content, if the agent says it there first:
// that is where it is recalled, the call only repeats it). A value is a whole leaf, or, where no
// earlier message holds the whole leaf, the exact values in it (policy/regions/exact_values.h).
// Mentions are whole words; values shorter than smallest_bytes are too common to count.
// Pure functions, any thread. Cost: O(earlier text) a value.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/runs/message_tokens.h"
#include "eval/runs/plain_action.h"

namespace memdecay {

enum class ActionPart : std::uint8_t { kToolName, kArgumentKey, kArgumentValue, kRecalled };
inline constexpr std::size_t kActionPartCount = 4;
const char* action_part_name(ActionPart part);

struct ActionPiece {
  ActionPart part = ActionPart::kToolName;
  TextSpan bytes;                  ///< of the rendered text
  std::int32_t message = 0;        ///< whose turn it is
  std::int32_t last_mention = -1;  ///< kRecalled: the newest earlier message that says it
  friend bool operator==(const ActionPiece&, const ActionPiece&) = default;
};

struct ActionOptions {
  std::size_t smallest_bytes = 3;
  /// A longer leaf is prose or code: only the exact values in it can be recalled.
  std::size_t longest_whole_bytes = 64;
};

/// A rendered conversation, as a view: `messages` are those that were rendered.
struct RenderedTurns {
  const nlohmann::ordered_json& messages;
  std::string_view text;
  std::span<const MessageExtent> extents;  ///< [messages]
};

/// The pieces of one assistant message, by their first byte; none where it does not act.
std::vector<ActionPiece> find_action_pieces(const RenderedTurns& turns, std::size_t message,
                                            const ActionOptions& options = {});

/// The half-open run of tokens that share a byte with the span.
struct TokenSpan {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};
TokenSpan tokens_of_bytes(TextSpan bytes, std::span<const std::uint32_t> token_ends);

}  // namespace memdecay
