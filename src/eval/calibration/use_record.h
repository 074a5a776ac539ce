// UseRecord: how long an item (a page, a span) of a run without eviction was in use.
#pragma once

#include <cstdint>

#include "policy/region.h"

namespace memdecay {

/// In steps, which are tokens.
struct UseRecord {
  Region region = Region::kOrdinary;
  std::int64_t born = 0;
  std::int64_t last_use = 0;  ///< >= born
  std::int64_t run_end = 0;   ///< >= last_use
};

}  // namespace memdecay
