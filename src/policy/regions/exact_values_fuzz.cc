// Any bytes: values are in order, disjoint, inside the text; marks agree with them byte for byte.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "policy/regions/exact_values.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto values = memdecay::find_exact_values(text);
  std::vector<std::uint32_t> ends(size);
  for (std::size_t i = 0; i < size; ++i) ends[i] = static_cast<std::uint32_t>(i + 1);
  std::vector<std::uint8_t> expected(size, 0);
  std::uint32_t last = 0;
  for (const auto& value : values) {
    MEMDECAY_CHECK(last <= value.begin && value.begin < value.end && value.end <= size);
    last = value.end;
    for (std::uint32_t i = value.begin; i < value.end; ++i) expected[i] = 1;
  }
  MEMDECAY_CHECK(memdecay::mark_exact_tokens(values, ends) == expected);
  return 0;
}
