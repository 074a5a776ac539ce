#include "cli/flag_checks.h"

#include <cmath>
#include <string>

#include "core/units.h"

namespace memdecay {
namespace {

constexpr int kMostTokens = 1 << 24;

}  // namespace

CLI::Validator byte_size() {
  return CLI::Validator(
      [](std::string& text) {
        const Result<std::uint64_t> bytes = parse_bytes(text);
        if (!bytes.ok()) return bytes.status().message();
        return *bytes > 0 ? std::string() : std::string("must be above 0 bytes");
      },
      "SIZE");
}

CLI::Validator finite_number() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
        return is_number ? std::string() : "\"" + text + "\" is no finite number";
      },
      "NUMBER");
}

CLI::Validator all_or_count() {
  return CLI::Validator(
      [](std::string& text) {
        int value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && (value == -1 || value >= 1);
        return fits ? std::string() : "\"" + text + "\" must be -1 (all) or a count above 0";
      },
      "COUNT");
}

CLI::Validator token_count() {
  return CLI::Range(0, kMostTokens);
}

}  // namespace memdecay
