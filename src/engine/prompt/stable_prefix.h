// stable_prefix: takes what changes from request to request out of the beginning of a conversation,
// so that it is the same prefix for all. Off unless somebody asks: it changes what the model reads.
//
// A volatile word is a time of day, a date, seconds since 1970, or an identifier with letters (a
// UUID, a hash, a request id), as miss_reason.h tells them, or a date with the month's name
// (written_date.h); plain numbers stay. Two rules, applied to system messages:
//     kNormalise   volatile words become "[time]" and "[id]";
//     kMove        lines with volatile words go to the end of their message, in order; where there
//                  are tools, which a template may write behind that, into the first user message,
//                  before its text.
// Pure, any thread. Cost: linear. Applying a rule twice changes nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memdecay {

enum class StablePrefix : std::uint8_t { kOff, kNormalise, kMove };
/// kInvalidArgument, with the names there are, for another name than off, normalise, move.
Result<StablePrefix> stable_prefix_named(std::string_view name);

std::string stable_text(std::string_view text, StablePrefix rule);

/// Applies the rule to a conversation {"messages", "tools"}: to the content of every message whose
/// role is "system" or "developer"; of a list of parts, to the "text" of each. Where there are
/// tools, kMove writes into the first user message too. What is not of that shape stays as it is.
void make_prefix_stable(nlohmann::ordered_json& conversation, StablePrefix rule);

}  // namespace memdecay
