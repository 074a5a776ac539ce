#include "engine/prompt/written_date.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/ascii.h"
#include "core/calendar_words.h"

namespace memdecay {
namespace {

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

/// A name of the calendar, which begins with a capital.
Read read_name(std::string_view text, std::size_t at, bool (*is_name)(std::string_view)) {
  if (at >= text.size() || !is_upper(text[at])) return std::nullopt;
  const std::size_t end = letters_end(text, at);
  if (end < text.size() && is_digit(text[end])) return std::nullopt;
  return is_name(text.substr(at, end - at)) ? Read(end) : std::nullopt;
}

/// A number of `fewest` to `most` digits, all of them.
Read read_number(std::string_view text, std::size_t at, std::size_t fewest, std::size_t most) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end - at < fewest || end - at > most) return std::nullopt;
  return end;
}

/// Whether a time of day is joined to what ends at `end`: "2026T10:46", "2026:10:46:00".
bool joins_time(std::string_view text, std::size_t end) {
  return end + 1 < text.size() &&
         std::string_view(":Tt").find(text[end]) != std::string_view::npos &&
         is_digit(text[end + 1]);
}

Read read_year(std::string_view text, std::size_t at) {
  const Read end = read_number(text, at, 4, 4);
  if (!end.has_value() || *end == text.size() || !is_letter(text[*end])) return end;
  return joins_time(text, *end) ? end : std::nullopt;
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

/// Behind a year that follows `end`.
Read read_next_year(std::string_view text, std::size_t end) {
  const Read gap = read_gap(text, end);
  return gap.has_value() ? read_year(text, *gap) : std::nullopt;
}

/// `end`, or behind a time of day that is joined there, with its fraction and zone.
std::size_t with_time(std::string_view text, std::size_t end) {
  if (!joins_time(text, end)) return end;
  constexpr std::string_view kWithin = ":.,+-";
  std::size_t at = end + 1;
  while (at < text.size() &&
         (is_digit(text[at]) || (kWithin.find(text[at]) != std::string_view::npos &&
                                 at + 1 < text.size() && is_digit(text[at + 1]))))
    ++at;
  if (at < text.size() && (text[at] == 'Z' || text[at] == 'z')) ++at;
  return at;
}

/// "November 30, 2026", "Nov 30th", "November 2026"
Read read_month_first(std::string_view text, std::size_t at) {
  const Read month = read_name(text, at, is_month_name);
  const Read gap = month.has_value() ? read_gap(text, *month) : std::nullopt;
  if (!gap.has_value()) return std::nullopt;
  const Read day = read_day(text, *gap);
  if (!day.has_value()) return read_year(text, *gap);
  const Read year = read_next_year(text, *day);
  return year.has_value() ? year : day;
}

/// "30 November 2026", "30th of Nov"
Read read_day_first(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 1> kOf = {"of"};
  const Read day = read_day(text, at);
  Read gap = day.has_value() ? read_gap(text, *day) : std::nullopt;
  if (!gap.has_value()) return std::nullopt;
  // "2. May I help": a number of a list, unless there is a year.
  const bool stopped = text.substr(*day, *gap - *day).find_first_of(".,") != std::string_view::npos;
  if (const Read of = read_word(text, *gap, kOf); of.has_value()) gap = read_gap(text, *of);
  const Read month = gap.has_value() ? read_name(text, *gap, is_month_name) : std::nullopt;
  const Read year = month.has_value() ? read_next_year(text, *month) : std::nullopt;
  return year.has_value() || stopped ? year : month;
}

Read read_date(std::string_view text, std::size_t at) {
  const Read month_first = read_month_first(text, at);
  return month_first.has_value() ? month_first : read_day_first(text, at);
}

}  // namespace

std::size_t written_date_end(std::string_view text, std::size_t at) {
  const Read weekday = read_name(text, at, is_weekday_name);
  const Read gap = weekday.has_value() ? read_gap(text, *weekday) : std::nullopt;
  Read date = gap.has_value() ? read_date(text, *gap) : std::nullopt;
  if (!date.has_value()) date = read_date(text, at);
  return date.has_value() ? with_time(text, *date) : at;
}

}  // namespace memdecay
