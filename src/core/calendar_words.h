// The months and weekdays as English names them, whole or short, in any case. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "core/ascii.h"

namespace memdecay {

inline bool is_month_name(std::string_view word) {
  constexpr std::array<std::string_view, 24> kMonths = {
      "january",   "february", "march",    "april",    "may",  "june", "july", "august",
      "september", "october",  "november", "december", "jan",  "feb",  "mar",  "apr",
      "jun",       "jul",      "aug",      "sep",      "sept", "oct",  "nov",  "dec"};
  return std::find(kMonths.begin(), kMonths.end(), lower_case(word)) != kMonths.end();
}

inline bool is_weekday_name(std::string_view word) {
  constexpr std::array<std::string_view, 17> kWeekdays = {
      "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mon", "tue",
      "tues",   "wed",     "thu",       "thur",     "thurs",  "fri",      "sat",    "sun"};
  return std::find(kWeekdays.begin(), kWeekdays.end(), lower_case(word)) != kWeekdays.end();
}

}  // namespace memdecay
