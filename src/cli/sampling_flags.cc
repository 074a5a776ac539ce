#include "cli/sampling_flags.h"

#include <limits>

#include "cli/flag_checks.h"

namespace memdecay {

void add_sampling_flags(CLI::App& command, SamplingOptions& options) {
  command.add_option("--temp", options.temperature, "temperature; 0 takes the likeliest token")
      ->check(finite_number())
      ->capture_default_str();
  command.add_option("--top-k", options.top_k, "keep the k likeliest tokens; 0: all")
      ->check(whole_number(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  command
      .add_option("--top-p", options.top_p, "keep the likeliest tokens that reach this probability")
      ->check(number_between(0.000001, 1.0))
      ->capture_default_str();
  command
      .add_option("--min-p", options.min_p,
                  "drop tokens below this share of the likeliest one's probability")
      ->check(number_between(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--seed", options.seed, "seed of the draws: the same seed gives the same text")
      ->check(CLI::Validator(
          [](std::string& text) {
            return text.starts_with('-') ? std::string("must be 0 or more") : std::string();
          },
          ""))
      ->capture_default_str();
}

}  // namespace memdecay
