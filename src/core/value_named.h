// value_named(): one of a few values by the word that a person wrote for it. Pure, any thread.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <utility>

#include "core/status.h"

namespace memdecay {

template <typename Value, std::size_t kCount>
using NamedValues = std::array<std::pair<std::string_view, Value>, kCount>;

/// kInvalidArgument where no value has the name, with all that there are; `what` says of what.
template <typename Value, std::size_t kCount>
Result<Value> value_named(std::string_view what, std::string_view name,
                          const NamedValues<Value, kCount>& values) {
  std::array<std::string_view, kCount> names;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (values[i].first == name) return values[i].second;
    names[i] = values[i].first;
  }
  return make_status(StatusCode::kInvalidArgument, "there is no {} \"{}\"; there are {}", what,
                     name, fmt::join(names, ", "));
}

}  // namespace memdecay
