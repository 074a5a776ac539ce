#include "cli/flag_checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "core/units.h"

namespace memdecay {
namespace {

constexpr int kMostTokens = 1 << 24;

/// Every digit must be part of a number; one beyond 64 bits becomes the nearest that fits.
std::optional<std::int64_t> read_whole(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return text.starts_with('-') ? INT64_MIN : INT64_MAX;
  return value;
}

}  // namespace

CLI::Validator byte_size() {
  return CLI::Validator(
      [](std::string& text) {
        const Result<std::uint64_t> bytes = parse_bytes(text);
        if (!bytes.ok()) return bytes.status().message();
        return *bytes > 0 ? std::string() : std::string("must be above 0 bytes");
      },
      "");
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const std::optional<std::int64_t> value = read_whole(text);
        if (!value) return fmt::format("\"{}\" is no whole number", text);
        if (*value >= least && *value <= most) return std::string();
        return fmt::format("{} is not between {} and {}", text, least, most);
      },
      "");
}

CLI::Validator finite_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
        return is_number ? std::string() : fmt::format("\"{}\" is no finite number", text);
      },
      "");
}

CLI::Validator number_between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || !std::isfinite(value))
          return fmt::format("\"{}\" is no finite number", text);
        if (value >= least && value <= most) return std::string();
        return fmt::format("{} is not between {} and {}", text, least, most);
      },
      "");
}

CLI::Validator all_or_count() {
  return CLI::Validator(
      [](std::string& text) {
        const std::optional<std::int64_t> value = read_whole(text);
        const bool fits = value && (*value == -1 || (*value >= 1 && *value <= INT32_MAX));
        return fits ? std::string()
                    : fmt::format("\"{}\" must be -1 (all) or a count above 0", text);
      },
      "");
}

CLI::Validator token_count() {
  return whole_number(0, kMostTokens);
}

}  // namespace memdecay
