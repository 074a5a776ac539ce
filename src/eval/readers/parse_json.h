// parse_json(): text from outside as JSON, or a sentence that says where it is none.
//
// Nesting is bounded, since copies of deep values recurse. Pure functions, any thread. O(bytes).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/status.h"

namespace memdecay {

/// Text whose arrays and objects nest deeper is refused.
inline constexpr int kDeepestJson = 128;

/// kCorrupt, with `place` and the byte where the text stops being JSON.
Result<nlohmann::ordered_json> parse_json(std::string_view text, const std::string& place);

/// Whether parse_json() takes the text; makes no value.
bool is_json(std::string_view text);

}  // namespace memdecay
