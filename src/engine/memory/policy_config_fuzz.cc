// Any bytes give a config whose numbers a policy can use, or one sentence.
#include <cmath>

#include "core/check.h"
#include "engine/memory/policy_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memdecay;
  const auto config =
      parse_policy_config(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!config.ok()) {
    MEMDECAY_CHECK(!config.status().message().empty());
    return 0;
  }
  for (std::size_t r = 0; r < kRegionCount; ++r) {
    MEMDECAY_CHECK(std::isfinite(config->initial[r]) && config->initial[r] > 0);
    MEMDECAY_CHECK(std::isfinite(config->decay[r]) && config->decay[r] >= 0);
  }
  return 0;
}
