// The methods of dicts, lists and tuples, and slices of ranges.
#pragma once

#include <string_view>

#include "model/chat_template/attributes.h"

namespace memdecay::jinja {

Method find_container_method(Kind kind, std::string_view name);

/// range[first:last:stride] with bounds already clamped.
Value slice_range(Runtime& runtime, const Value& range, std::int64_t first, std::int64_t last,
                  std::int64_t stride);

}  // namespace memdecay::jinja
