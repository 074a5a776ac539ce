#include "engine/written_date.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/ascii.h"

namespace memdecay {
namespace {

constexpr std::array<std::string_view, 24> kMonths = {
    "january",   "february", "march",    "april",    "may",  "june", "july", "august",
    "september", "october",  "november", "december", "jan",  "feb",  "mar",  "apr",
    "jun",       "jul",      "aug",      "sep",      "sept", "oct",  "nov",  "dec"};
constexpr std::array<std::string_view, 17> kWeekdays = {
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mon", "tue",
    "tues",   "wed",     "thu",       "thur",     "thurs",  "fri",      "sat",    "sun"};
constexpr std::array<std::string_view, 4> kOrdinals = {"st", "nd", "rd", "th"};

/// Each reader returns where it stopped, or nothing where the text is something else.
using Read = std::optional<std::size_t>;

std::size_t letters_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_letter(text[at])) ++at;
  return at;
}

Read read_word(std::string_view text, std::size_t at, std::span<const std::string_view> words) {
  const std::size_t end = letters_end(text, at);
  if (end < text.size() && is_digit(text[end])) return std::nullopt;
  const std::string word = lower_case(text.substr(at, end - at));
  if (std::find(words.begin(), words.end(), word) == words.end()) return std::nullopt;
  return end;
}

Read read_name(std::string_view text, std::size_t at, std::span<const std::string_view> names) {
  if (at >= text.size() || !is_upper(text[at])) return std::nullopt;
  return read_word(text, at, names);
}

/// A number of `fewest` to `most` digits with no digit or letter behind it.
Read read_number(std::string_view text, std::size_t at, std::size_t fewest, std::size_t most) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end - at < fewest || end - at > most) return std::nullopt;
  return end;
}

Read read_year(std::string_view text, std::size_t at) {
  const Read end = read_number(text, at, 4, 4);
  return end.has_value() && *end < text.size() && is_letter(text[*end]) ? std::nullopt : end;
}

Read read_day(std::string_view text, std::size_t at) {
  const Read end = read_number(text, at, 1, 2);
  if (!end.has_value() || *end == text.size() || !is_letter(text[*end])) return end;
  return read_word(text, *end, kOrdinals);
}

/// What stands between the parts of a date: "30 Nov", "Nov. 30, 2026", "30-Nov-2026".
Read read_gap(std::string_view text, std::size_t at) {
  constexpr std::string_view kGap = " ,.-/";
  std::size_t end = at;
  while (end < text.size() && end - at < 2 && kGap.find(text[end]) != std::string_view::npos) ++end;
  return end > at ? Read(end) : std::nullopt;
}

/// `end`, or behind a year that follows it.
std::size_t with_year(std::string_view text, std::size_t end) {
  const Read gap = read_gap(text, end);
  const Read year = gap.has_value() ? read_year(text, *gap) : std::nullopt;
  return year.value_or(end);
}

/// "November 30, 2026", "Nov 30th", "November 2026"
Read read_month_first(std::string_view text, std::size_t at) {
  const Read month = read_name(text, at, kMonths);
  const Read gap = month.has_value() ? read_gap(text, *month) : std::nullopt;
  if (!gap.has_value()) return std::nullopt;
  const Read day = read_day(text, *gap);
  return day.has_value() ? with_year(text, *day) : read_year(text, *gap);
}

/// "30 November 2026", "30th of Nov"
Read read_day_first(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 1> kOf = {"of"};
  const Read day = read_day(text, at);
  Read gap = day.has_value() ? read_gap(text, *day) : std::nullopt;
  if (!gap.has_value()) return std::nullopt;
  if (const Read of = read_word(text, *gap, kOf); of.has_value()) gap = read_gap(text, *of);
  const Read month = gap.has_value() ? read_name(text, *gap, kMonths) : std::nullopt;
  return month.has_value() ? Read(with_year(text, *month)) : std::nullopt;
}

Read read_date(std::string_view text, std::size_t at) {
  const Read month_first = read_month_first(text, at);
  return month_first.has_value() ? month_first : read_day_first(text, at);
}

}  // namespace

std::size_t written_date_end(std::string_view text, std::size_t at) {
  const Read weekday = read_name(text, at, kWeekdays);
  const Read gap = weekday.has_value() ? read_gap(text, *weekday) : std::nullopt;
  const Read dated = gap.has_value() ? read_date(text, *gap) : std::nullopt;
  return dated.has_value() ? *dated : read_date(text, at).value_or(at);
}

}  // namespace memdecay
