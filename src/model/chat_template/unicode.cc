#include "model/chat_template/unicode.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace memdecay::jinja {
namespace {

struct CodeRange {
  char32_t first;
  char32_t last;
};
/// Every step-th code point of [first, last] maps to itself + delta.
struct CaseRun {
  char32_t first;
  char32_t last;
  std::int32_t delta;
  char32_t step;
};
/// Mappings to several code points, 0 where there are fewer than three.
struct CaseSpecial {
  char32_t code;
  char32_t mapped[3];
};

#include "model/chat_template/unicode_tables.inc"

template <std::size_t n>
bool in_ranges(const CodeRange (&ranges)[n], char32_t code) {
  const auto* after = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                       [](char32_t c, const CodeRange& r) { return c < r.first; });
  return after != std::begin(ranges) && code <= std::prev(after)->last;
}

template <std::size_t n, std::size_t m>
std::u32string map_case(const CaseRun (&runs)[n], const CaseSpecial (&specials)[m], char32_t code) {
  const auto* special =
      std::lower_bound(std::begin(specials), std::end(specials), code,
                       [](const CaseSpecial& s, char32_t c) { return s.code < c; });
  if (special != std::end(specials) && special->code == code) {
    std::u32string out;
    for (const char32_t mapped : special->mapped) {
      if (mapped != 0) out.push_back(mapped);
    }
    return out;
  }
  const auto* after = std::upper_bound(std::begin(runs), std::end(runs), code,
                                       [](char32_t c, const CaseRun& r) { return c < r.first; });
  // Runs of step 2 may interleave, so the one before may hold the code point as well.
  for (int back = 0; back < 2 && after != std::begin(runs); ++back) {
    --after;
    if (code <= after->last && (code - after->first) % after->step == 0) {
      return {static_cast<char32_t>(static_cast<std::int32_t>(code) + after->delta)};
    }
  }
  return {code};
}

/// A capital sigma is written in its final form after a cased letter and before none.
bool is_final_sigma(std::u32string_view text, std::size_t index) {
  std::size_t i = index;
  while (i > 0 && in_ranges(kCaseIgnorable, text[i - 1])) --i;
  if (i == 0 || !is_cased(text[i - 1])) return false;
  i = index + 1;
  while (i < text.size() && in_ranges(kCaseIgnorable, text[i])) ++i;
  return i == text.size() || !is_cased(text[i]);
}

}  // namespace

bool is_space(char32_t code) {
  return in_ranges(kSpace, code);
}
bool is_alphabetic(char32_t code) {
  return in_ranges(kAlphabetic, code);
}
bool is_decimal(char32_t code) {
  return in_ranges(kDecimal, code);
}
bool is_digit(char32_t code) {
  return in_ranges(kDigit, code);
}
bool is_numeric(char32_t code) {
  return in_ranges(kNumeric, code);
}
bool is_upper_case(char32_t code) {
  return in_ranges(kUpperCase, code);
}
bool is_lower_case(char32_t code) {
  return in_ranges(kLowerCase, code);
}
bool is_cased(char32_t code) {
  return in_ranges(kCased, code);
}
bool is_printable(char32_t code) {
  return !in_ranges(kNotPrintable, code);
}

std::u32string to_upper(char32_t code) {
  return map_case(kUpperRuns, kUpperSpecial, code);
}
std::u32string to_title(char32_t code) {
  return map_case(kTitleRuns, kTitleSpecial, code);
}
std::u32string to_lower(std::u32string_view text, std::size_t index) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  if (text[index] == kCapitalSigma && is_final_sigma(text, index)) return {kFinalSigma};
  return map_case(kLowerRuns, kLowerSpecial, text[index]);
}

}  // namespace memdecay::jinja
