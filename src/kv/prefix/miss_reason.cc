#include "kv/prefix/miss_reason.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/ascii.h"
#include "core/calendar_words.h"

namespace memdecay {
namespace {

std::size_t count(std::string_view text, bool (*is)(char)) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is));
}

bool one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), lower_case(word)) != words.end();
}

constexpr std::array<std::string_view, 15> kTimeUnits = {
    "ms", "s",     "sec",  "seconds", "second", "min", "minutes", "minute",
    "h",  "hours", "hour", "days",    "day",    "am",  "pm"};
constexpr std::array<std::string_view, 9> kTimeLabels = {
    "time", "date", "clock", "timestamp", "now", "today", "uptime", "datetime", "epoch"};
constexpr std::array<std::string_view, 12> kIdLabels = {
    "id",    "uuid",    "nonce", "hash", "token",  "request",
    "trace", "session", "run",   "sha",  "digest", "fingerprint"};

/// Reads a word from its start; every try_ takes nothing where it says no.
class WordReader {
 public:
  explicit WordReader(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }

  bool try_char(std::string_view choices) {
    if (rest_.empty() || choices.find(rest_[0]) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// A number of `least` to `most` digits, all of them.
  std::optional<int> try_number(std::size_t least, std::size_t most) {
    std::size_t digits = 0;
    while (digits < rest_.size() && is_digit(rest_[digits])) ++digits;
    if (digits < least || digits > most) return std::nullopt;
    int value = 0;
    for (const char c : rest_.substr(0, digits)) value = value * 10 + (c - '0');
    rest_.remove_prefix(digits);
    return value;
  }
  char next() const { return rest_.empty() ? '\0' : rest_[0]; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

bool within(std::optional<int> value, int least, int most) {
  return value && *value >= least && *value <= most;
}

/// hh:mm, then seconds, a fraction, am or pm, and a zone where there are any.
bool read_time(WordReader& word) {
  if (!within(word.try_number(1, 2), 0, 24) || !word.try_char(":") ||
      !within(word.try_number(2, 2), 0, 59))
    return false;
  if (word.try_char(":") && !within(word.try_number(2, 2), 0, 60)) return false;
  if (word.try_char(".") && !word.try_number(1, 9)) return false;
  if (word.try_char("aApP") && !word.try_char("mM")) return false;
  if (word.try_char("zZ")) return true;
  if (!word.try_char("+-")) return true;
  if (word.try_number(4, 4)) return true;
  return within(word.try_number(2, 2), 0, 14) &&
         (!word.try_char(":") || within(word.try_number(2, 2), 0, 59));
}

bool read_date(WordReader& word) {
  const std::optional<int> first = word.try_number(1, 4);
  const char separator = word.next();
  if (!word.try_char("-/.")) return false;
  const std::optional<int> second = word.try_number(1, 2);
  if (!word.try_char({&separator, 1})) return false;
  if (within(first, 1900, 2199))
    return within(second, 1, 12) && within(word.try_number(1, 2), 1, 31);
  if (!within(first, 1, 31) || !within(second, 1, 31)) return false;
  const bool short_year = separator == '/' && word.rest().size() == 2;
  return short_year ? word.try_number(2, 2).has_value() : within(word.try_number(4, 4), 1900, 2199);
}

/// 20261130, 20261130T070431Z, 1795935871, 1795935871.25, 1795935871250.
bool is_digit_time(std::string_view word) {
  const std::size_t digits =
      static_cast<std::size_t>(std::find_if_not(word.begin(), word.end(), is_digit) - word.begin());
  const std::string_view rest = word.substr(digits);
  if (digits == 8) {
    WordReader month(word.substr(4, 2)), day(word.substr(6, 2));
    const bool date = (word.starts_with("19") || word.starts_with("20")) &&
                      within(month.try_number(2, 2), 1, 12) && within(day.try_number(2, 2), 1, 31);
    const bool time = rest.size() >= 5 &&
                      std::string_view("Tt_-").find(rest[0]) != std::string_view::npos &&
                      count(rest, is_digit) >= rest.size() - 2;
    return date && (rest.empty() || time);
  }
  if ((digits != 10 && digits != 13) || word[0] != '1') return false;
  return rest.empty() || (rest[0] == '.' && count(rest, is_digit) == rest.size() - 1);
}

bool is_uuid(std::string_view word) {
  if (word.size() != 36) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? word[i] != '-' : !is_hex(word[i])) return false;
  }
  return true;
}

/// How often letters and digits take turns: 4 in "a1b2c", 1 in "qwen25", 0 in "hello".
int turns(std::string_view word) {
  int turns = 0;
  for (std::size_t i = 1; i < word.size(); ++i)
    turns += is_digit(word[i - 1]) != is_digit(word[i]) ? 1 : 0;
  return turns;
}

/// The words of both texts around their first different byte, and what stands beside them.
struct DifferentWords {
  std::string head;  // before the words
  std::string remembered, planned;
  std::string remembered_next, planned_next;  // the words that follow
  std::string remembered_part, planned_part;  // of the words, between '/', ':' and '.'
};

std::size_t word_end(std::string_view text, std::size_t from) {
  while (from < text.size() && is_word_character(text[from])) ++from;
  return from;
}

/// Without the punctuation that ends a clause, not a word.
std::string_view bare(std::string_view word) {
  while (!word.empty() && std::string_view(".,:;/+-").find(word.back()) != std::string_view::npos)
    word.remove_suffix(1);
  return word;
}

std::string_view next_word(std::string_view text, std::size_t from) {
  while (from < text.size() && !is_word_character(text[from]) && text[from] != '\n') ++from;
  return bare(text.substr(from, word_end(text, from) - from));
}

std::string_view part_at(std::string_view word, std::size_t at) {
  constexpr std::string_view kBorders = "/:.";
  at = std::min(at, word.size());
  const std::size_t end = std::min(word.find_first_of(kBorders, at), word.size());
  const std::size_t border = at == 0 ? std::string_view::npos : word.find_last_of(kBorders, at - 1);
  const std::size_t begin = border == std::string_view::npos ? 0 : border + 1;
  return word.substr(begin, end - begin);
}

DifferentWords different_words(const TextDifference& difference) {
  const std::string_view old_text = difference.remembered;
  const std::string_view new_text = difference.planned;
  std::size_t same = 0;
  while (same < std::min(old_text.size(), new_text.size()) && old_text[same] == new_text[same])
    ++same;
  const std::string shared = std::string(difference.before) + std::string(new_text.substr(0, same));
  std::size_t begin = shared.size();
  while (begin > 0 && is_word_character(shared[begin - 1])) --begin;
  const std::string stem = shared.substr(begin);
  const std::size_t old_end = word_end(old_text, same);
  const std::size_t new_end = word_end(new_text, same);

  DifferentWords words;
  words.head = shared.substr(0, begin);
  const std::string old_word = stem + std::string(old_text.substr(same, old_end - same));
  const std::string new_word = stem + std::string(new_text.substr(same, new_end - same));
  words.remembered = bare(old_word);
  words.planned = bare(new_word);
  words.remembered_next = next_word(old_text, old_end);
  words.planned_next = next_word(new_text, new_end);
  words.remembered_part = part_at(words.remembered, stem.size());
  words.planned_part = part_at(words.planned, stem.size());
  return words;
}

/// The words of the line that ends with `text`, the last one first, at most three.
std::array<std::string, 3> last_words(std::string_view text) {
  std::array<std::string, 3> words;
  std::size_t end = text.size();
  for (std::string& word : words) {
    while (end > 0 && !is_word_character(text[end - 1]) && text[end - 1] != '\n') --end;
    std::size_t begin = end;
    while (begin > 0 && is_word_character(text[begin - 1])) --begin;
    word = bare(text.substr(begin, end - begin));
    end = begin;
  }
  return words;
}

/// Whether one of the label's parts ("request_id" has two) is one of `labels`.
bool is_label(std::string_view label, std::span<const std::string_view> labels) {
  while (!label.empty()) {
    const std::size_t end = std::min(label.find_first_of("-_.:/"), label.size());
    if (one_of(label.substr(0, end), labels)) return true;
    label.remove_prefix(std::min(end + 1, label.size()));
  }
  return false;
}

bool starts_with_digit(std::string_view word) {
  return !word.empty() && is_digit(word[0]);
}

bool is_clock(const DifferentWords& words, const std::array<std::string, 3>& ahead) {
  const auto both = [&](auto&& holds) { return holds(words.remembered) && holds(words.planned); };
  if (both(is_time_or_date)) return true;
  const auto calendar = [](std::string_view w) { return is_month_name(w) || is_weekday_name(w); };
  if (both(calendar)) return true;
  const auto half = [](std::string_view w) {
    return lower_case(w) == "am" || lower_case(w) == "pm";
  };
  if (both(half)) return true;
  if (!both(starts_with_digit)) return false;
  if (is_month_name(ahead[0]) || is_month_name(ahead[1])) return true;
  if (is_month_name(words.remembered_next) && is_month_name(words.planned_next)) return true;
  if (one_of(words.remembered_next, kTimeUnits) && one_of(words.planned_next, kTimeUnits))
    return true;
  return std::any_of(ahead.begin(), ahead.end(),
                     [](std::string_view w) { return is_label(w, kTimeLabels); });
}

bool is_id(const DifferentWords& words, const std::array<std::string, 3>& ahead) {
  if (is_identifier(words.remembered) && is_identifier(words.planned)) return true;
  const std::string_view old_part = words.remembered_part;
  const std::string_view new_part = words.planned_part;
  if (is_identifier(old_part) && is_identifier(new_part)) return true;
  const bool digits = count(old_part, is_digit) > 0 && count(new_part, is_digit) > 0;
  if (digits && is_label(ahead[0], kIdLabels)) return true;
  // key=value with values that are all of one length, as counters and checksums are.
  const bool is_value = !words.head.empty() && words.head.back() == '=';
  return is_value && old_part.size() == new_part.size() && old_part.size() >= 4 &&
         count(old_part, is_digit) + count(new_part, is_digit) > 0;
}

}  // namespace

std::string_view miss_kind_name(MissKind kind) {
  constexpr std::array<std::string_view, 12> kNames = {
      "hit",   "new_text",   "no_entry",        "evicted",        "other_borders", "short_page",
      "clock", "identifier", "different_tools", "edited_message", "budget",        "other_salt"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_word_character(char c) {
  return is_alnum(c) || std::string_view("-:._/+").find(c) != std::string_view::npos;
}

bool is_time_or_date(std::string_view word) {
  WordReader time(word);
  if (read_time(time) && time.at_end()) return true;
  WordReader date(word);
  if (read_date(date) &&
      (date.at_end() || (date.try_char("Tt_-") && read_time(date) && date.at_end())))
    return true;
  return is_digit_time(word);
}

bool is_identifier(std::string_view word) {
  if (is_uuid(word)) return true;
  const std::size_t border = word.find_last_of("_-");
  const std::string_view tail = border == std::string_view::npos ? word : word.substr(border + 1);
  const std::size_t digits = count(tail, is_digit);
  const std::size_t letters = count(tail, is_letter);
  if (digits + letters != tail.size()) return false;
  if (letters == 0) return digits >= 6;
  if (digits == 0) return false;
  if (tail.size() >= 7 && count(tail, is_hex) == tail.size()) return true;
  return tail.size() >= 8 && (turns(tail) >= 3 || digits >= 5);
}

MissKind classify_difference(const TextDifference& difference) {
  const DifferentWords words = different_words(difference);
  const std::array<std::string, 3> ahead = last_words(words.head);
  if (is_clock(words, ahead)) return MissKind::kClock;
  if (difference.in_tools) return MissKind::kDifferentTools;
  if (is_id(words, ahead)) return MissKind::kIdentifier;
  return MissKind::kEditedMessage;
}

}  // namespace memdecay
