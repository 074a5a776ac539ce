// Dates as English writes them with the month's name: "November 30, 2026", "Mon, 30 Nov 2026",
// "the 30th of November", "Nov 2026", "30-Nov-2026"; with a time of day that is joined to it
// ("30/Nov/2026:10:46:00"). Names begin with a capital; a month alone is no date ("2. May I"), nor
// is a weekday alone. Pure, any thread. Cost: O(1).
#pragma once

#include <cstddef>
#include <string_view>

namespace memdecay {

/// Where the date that begins at `at` ends, a weekday before it included; `at` where none begins
/// there. REQUIRES: at <= text.size(), and a word begins at `at`.
std::size_t written_date_end(std::string_view text, std::size_t at);

}  // namespace memdecay
