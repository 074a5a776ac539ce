// RenderLimits: what a template may use before its render ends with kResourceExhausted.
//
// Templates come out of model files, which may be hostile. Plain value.
#pragma once

#include <cstdint>

namespace memdecay {

struct RenderLimits {
  std::uint64_t work = 50'000'000;         ///< evaluation steps, list items, 16 characters each
  std::uint64_t characters = 256'000'000;  ///< of all strings built on the way
  std::uint64_t output_characters = 16'000'000;
  int depth = 1200;  ///< nesting of evaluation, macros and values
};

}  // namespace memdecay
