#include "core/units.h"

#include <array>
#include <cctype>
#include <limits>

namespace memdecay {
namespace {

constexpr std::array<std::string_view, 5> kPrefixes = {"", "K", "M", "G", "T"};

/// The power of 1024 that a suffix stands for, or -1.
int suffix_power(std::string_view suffix) {
  std::string upper;
  for (const char c : suffix)
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (std::size_t power = 0; power < kPrefixes.size(); ++power) {
    const std::string prefix(kPrefixes[power]);
    if (upper == prefix || upper == prefix + "B") return static_cast<int>(power);
    if (power > 0 && upper == prefix + "IB") return static_cast<int>(power);
  }
  return -1;
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t power = 0;
  while (value >= 1024.0 && power + 1 < kPrefixes.size()) {
    value /= 1024.0;
    ++power;
  }
  return value < 10.0 ? fmt::format("{:.2f} {}iB", value, kPrefixes[power])
                      : fmt::format("{:.1f} {}iB", value, kPrefixes[power]);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::uint64_t kLimit = std::numeric_limits<std::int64_t>::max();
  const Status failure =
      make_status(StatusCode::kInvalidArgument,
                  "\"{}\" is no byte size: write a whole number with an optional suffix "
                  "such as KiB, MiB or GiB",
                  text);
  std::size_t digits = 0;
  std::uint64_t value = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) {
    const auto digit = static_cast<std::uint64_t>(text[digits] - '0');
    if (value > (kLimit - digit) / 10) return failure;
    value = value * 10 + digit;
    ++digits;
  }
  if (digits == 0) return failure;
  std::string_view suffix = text.substr(digits);
  if (suffix.starts_with(' ')) suffix.remove_prefix(1);
  const int power = suffix_power(suffix);
  if (power < 0) return failure;
  for (int i = 0; i < power; ++i) {
    if (value > kLimit / 1024) return failure;
    value *= 1024;
  }
  return value;
}

}  // namespace memdecay
