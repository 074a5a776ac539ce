// MissKind: why a prompt found less of its prefix than it could have; and the rules that tell from
// two texts what differs between them. Pure functions on untrusted bytes, any thread.
//
// The rules look at the words that hold the first difference: both must be of a kind (two times of
// day, two identifiers). They are a diagnosis for people; nothing is decided by them.
#pragma once

#include <cstdint>
#include <string_view>

namespace memdecay {

enum class MissKind : std::uint8_t {
  kHit,             ///< everything matched
  kNewText,         ///< what is remembered ends here
  kNoEntry,         ///< nothing of this tenant begins like this
  kEvicted,         ///< it was remembered, and evicted
  kOtherBorders,    ///< the tokens are remembered, in pages that were cut elsewhere
  kShortPage,       ///< a model with sliding windows shares full pages only
  kClock,           ///< a time or a date
  kIdentifier,      ///< a request id, hash, or the like
  kDifferentTools,  ///< the tool definitions
  kEditedMessage,   ///< other words
  kBudget,          ///< the session's own budget holds no more of it
  kOtherSalt,       ///< another tenant has it; only the operator is told
};

/// "clock", "edited_message", ...: for JSON and metrics.
std::string_view miss_kind_name(MissKind kind);

/// Two texts that agree up to the end of `before` and then go on differently.
struct TextDifference {
  std::string_view before;
  std::string_view remembered;
  std::string_view planned;
  bool in_tools = false;  ///< the difference lies in the tool definitions
};

/// kClock, kDifferentTools, kIdentifier or kEditedMessage. Cost: linear.
MissKind classify_difference(const TextDifference& difference);

/// What the words of these rules are made of: letters, digits, and what joins them in times, dates
/// and ids.
bool is_word_character(char c);
/// A time of day, a date, both, or seconds since 1970, and nothing else.
bool is_time_or_date(std::string_view word);
/// A UUID, a hash, digits in a row, or letters and digits mixed as people do not write them.
bool is_identifier(std::string_view word);

}  // namespace memdecay
